"""The Kalman stage without each of its parts, with other laws and windows, smoothed, and in other forms."""
