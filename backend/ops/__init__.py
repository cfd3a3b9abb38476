"""Operations with a reference in torch (the specification) and faster implementations."""
