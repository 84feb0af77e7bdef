# Runs the Python example of README.md with the daemon whose address is the argument.
import pathlib, sys

page = (pathlib.Path(__file__).parents[3] / "README.md").read_text()
example = page.split("```python\n")[1].split("```")[0]
port = sys.argv[1].rsplit(":", 1)[1]
exec(example.replace("port=7379", f"port={port}"))
