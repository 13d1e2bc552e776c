"""What every door says, as frozen values."""
