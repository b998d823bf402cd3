"""Module."""
import os

# Colours of a light.
@final
class Light(Base,
            metaclass=Meta):
    """A light."""

    LEVEL = {"a": 1}

    @property
    def level(self) -> int:
        def inner():
            return """
def not_a_function():
"""
        return inner()

    class State:
        pass


async def main(argv=None):
    print("class X:")

if __name__ == "__main__":
    main()
