"""Frameworks that train models: PyTorch, TensorFlow, JAX and MXNet."""
