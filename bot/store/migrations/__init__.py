"""Alembic's migrations: `versions/`, one file a step, never changed once released.

During an upgrade, the version before and the new one work on one database, and the new one may have to be undone. So:

- *A minor version only expands*: new tables, new columns that are nullable or have a server default, new indexes, a
  looser CHECK constraint. Its migration has `compatible_with`, the oldest schema whose programs can work with the new
  one: they read and write columns by name, and ignore the others.
- *What is no longer needed is removed one minor version later*, when no program uses it any more. Such a migration
  names the version before it in `compatible_with`. Without `compatible_with`, no older program accepts the schema.
- *A new kind of request or notice needs no migration of rows*: older programs leave it to newer ones for a while
  (`bot.store.claims`).
- A new index of a big table locks it while it is made. Say in the changelog how long that took for a million jobs.

A test reads the statements of each migration that says it only expands.
"""
