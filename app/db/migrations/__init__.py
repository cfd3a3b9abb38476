"""The history of the tables. Migrations are only added, never changed."""
