"""What can a plan say, for people and for programs? Pages and schemas that are made from `spec/` and nothing else."""
