"""A pytest plugin that compiles every test function before it is called."""

import pytest

import oxyfuel


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    compiled = oxyfuel.compile(pyfuncitem.obj, options={"fill_caches_in_eager": False})
    compiled(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    return True
