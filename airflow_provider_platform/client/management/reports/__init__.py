"""Reports, their placements and snapshots."""
