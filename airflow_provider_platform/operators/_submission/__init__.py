"""Submission once: how operators handle several tries, so that no run is submitted twice or
orphaned."""
