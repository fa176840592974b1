"""The Python of the README, and of the page on the Trainer, runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/trainer.md"])
def test_the_python_of_the_pages_runs(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(blocks) >= 4
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    result = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    if page == "README.md":
        # The last two printed things are facts: the value of Kuhn poker and of matching pennies.
        numbers = [float(n) for n in re.findall(r"-?\d+\.\d*(?:e-?\d+)?", result.stdout)]
        assert any(abs(n + 1 / 18) < 1e-3 for n in numbers)
