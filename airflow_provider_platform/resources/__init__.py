"""One package or module for each thing of the service: its models, its calls and its run."""
