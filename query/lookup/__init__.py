"""Looking things up in resource indexes: what is at hand, functions, frames of stacks, and what a vector rests on."""
