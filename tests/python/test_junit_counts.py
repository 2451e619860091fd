"""tools/junit_counts.py counts what test programs leave behind."""
import junit_counts

XML = ('<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure>x</failure></testcase>'
       '<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase></testsuite></testsuites>')


def test_counts(tmp_path):
    (tmp_path / "r.xml").write_text(XML)
    assert junit_counts.counts(tmp_path / "r", 1) == (1, 2)


def test_counts_of_parts(tmp_path):
    (tmp_path / "r.xml").write_text(XML)
    (tmp_path / "r").mkdir()
    for part in "1.xml", "2.xml":
        (tmp_path / "r" / part).write_text(XML)
    (tmp_path / "r" / "3.xml").write_text("<testsuites><testsuite>")  # of a process that has died
    assert junit_counts.counts(tmp_path / "r", 1) == (3, 6)


def test_failed_stage_without_failed_test(tmp_path):
    path = tmp_path / "r"
    path.with_suffix(".xml").write_text('<testsuite><testcase name="a"/></testsuite>')
    assert junit_counts.counts(path, 3) == (1, 1)
    assert junit_counts.counts(path, 0) == (1, 0)


def test_without_file(tmp_path):
    assert junit_counts.counts(tmp_path / "none", 0) == (1, 0)
    assert junit_counts.counts(tmp_path / "none", 2) == (0, 1)
    (tmp_path / "empty.xml").write_text("")
    assert junit_counts.counts(tmp_path / "empty", 1) == (0, 1)
