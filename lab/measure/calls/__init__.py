"""The calls measured: real uses of Python's library, fsspec, requests and urllib3."""
