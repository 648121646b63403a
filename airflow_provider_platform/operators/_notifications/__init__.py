"""The parts of the notification operators."""
