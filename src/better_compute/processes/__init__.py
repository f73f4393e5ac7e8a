"""The commands that need a whole deployment: serve, work, dev, migrate, doctor, bootstrap, login, demo.

Each file holds one of them, and nothing is imported before it is asked for: `better-compute --help` must not pay for a
web server. `PROCESSES` is the list; a name is looked up here before it is looked up among the methods.
"""

from typing import Final

PROCESSES: Final = {
    "serve": ("serve", "Serve the API over HTTP."),
    "work": ("work", "Run background steps."),
    "dev": ("dev", "Run a whole platform on this machine."),
    "migrate": ("migrate", "Bring the database's schema up to date."),
    "doctor": ("doctor", "Look for what is wrong, and repair it."),
    "bootstrap": ("accounts", "Make the root administrator of a new deployment, once."),
    "login": ("accounts", "Sign in with password and second factor."),
    "logout": ("accounts", "End the saved session."),
    "demo": ("demo", "Tell the story of the platform against a running one."),
    "openapi": ("describe", "Print the OpenAPI document."),
}
"""Command name, the module below this package that has it, and its line in the help."""
