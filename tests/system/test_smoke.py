import pytest
pytestmark = pytest.mark.system

@pytest.mark.parametrize("deferrable", [False, True])
def test_answer(ask, sandbox, deferrable):
    task = ask(deferrable=deferrable)
    task.wait("success")
    print(task.result)
    print(task.logs())
    assert len(sandbox.state().runs) == 1
    print(task.now())

@pytest.mark.parametrize("deferrable", [False, True])
def test_sync(sync, sandbox, deferrable):
    task = sync(deferrable=deferrable)
    task.wait("success")
    print(task.result)
    assert len(sandbox.state().syncs) == 1
