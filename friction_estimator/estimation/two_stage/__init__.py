"""The observer: a two-stage Kalman filter of friction laws and of errors of model and sensors."""
