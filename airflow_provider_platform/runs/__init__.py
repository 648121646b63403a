"""The kinds of runs on the service, each an object that operator and trigger share."""
