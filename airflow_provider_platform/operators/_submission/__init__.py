"""Submission once: what every operator does about tries, so that nothing is asked twice or left."""
