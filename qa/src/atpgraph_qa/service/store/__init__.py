"""The database: SQLite by default, PostgreSQL by URL; SQLAlchemy Core over both."""
