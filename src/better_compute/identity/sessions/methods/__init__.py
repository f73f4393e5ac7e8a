"""The calls of `auth.*`, `root.*` and `sts.*`: signing in and out, passwords, authenticators, root authority.

Whatever hashes a password does so with no transaction open. A person's password or authenticator can be replaced only
by somebody who may act for them anyway (the rule of passing on); root administrators are out of reach of all others.
"""
