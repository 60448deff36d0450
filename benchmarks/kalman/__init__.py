"""The Kalman stage without each of its parts, with other laws and windows, in hindsight, and in other forms."""
