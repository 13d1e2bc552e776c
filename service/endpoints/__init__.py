"""The handlers of the routes: each reads what was asked, asks the core, and hands the answer on."""
