"""The pieces that random Python programs are made of.

In a template ``$type`` is an expression of that type, ``$v_type`` a variable that holds one, ``$s_type`` a variable
that is given one, ``$new`` a name of its own (the same all over one template), and a line that is only ``$block``
(``$loop``: in a loop, ``$safe``: without return, break and continue) a list of statements. ``$any`` is of any type.
Numbers stay small and exact, lists short, so that programs end and results can be compared exactly.
"""

LITERALS = {
    "int": ["0", "1", "2", "3", "-1", "7", "1000"],
    "float": ["0.0", "0.5", "2.0", "-1.25", "-0.0", "1e3"],
    "str": ["''", "'a'", "'bc'", "'xyz'", "'key'"],
    "bool": ["True", "False"],
    "list": ["[]", "[1, 2, 3]", "[3, 1]", "[0]"],
    "dict": ["{}", "{'a': 1}", "{'bc': 2, 'a': 3}"],
    "tuple": ["()", "(1, 2)", "(3, 1, 2)"],
    "set": ["set()", "{1, 2}", "{3}"],
    "tensor": ["torch.arange(3.0)", "torch.ones(3)", "torch.tensor([1.0, -2.0, 3.0])", "torch.zeros(3)"],
    "none": ["None"],
}

EXPRESSIONS = {
    "int": [
        "$int + $int", "$int - $int", "($int * $int) % 1009", "$int // $int", "$int % $int", "-$int", "~$int", "abs($int)",
        "$int & $int", "$int | $int", "$int ^ $int", "($int % 5) << ($int % 4)", "$int >> ($int % 4)", "divmod($int, $int)[1]",
        "len($list)", "len($str)", "len($dict)", "len($set)", "$list[$int]", "$tuple[$int]", "$dict[$str]", "$dict.get($str, $int)",
        "sum($list)", "max($list)", "min($tuple)", "max($int, $int)", "min($list, default=$int)", "int($float)", "int($bool)",
        "($int if $bool else $int)", "($int and $int)", "($int or $int)", "$tensor.shape[0]", "$tensor.dim()", "int($tensor.sum())",
        "$tensor.sum().int().item()", "$list.index($int)", "$list.count($int)", "$str.count($str)", "$str.find($str)", "ord($str[0])",
        "(lambda p, q=$int: p + q)($int)", "sum(e * 2 for e in $list)", "sum(1 for e in $list if e > $int)", "next(iter($list))",
        "next((e for e in $list if e > $int), $int)", "functools.reduce(lambda p, q: (p * 3 + q) % 101, $list, $int)",
        "operator.add($int, $int)", "math.gcd($int, $int)", "round($float)", "bool($int) + $int", "(s := $int) + s", "hash(first_int($int)) % 7",
        "$call_int", "$obj.value", "$obj.twice", "getattr($obj, 'value', $int)", "$obj.bump($int)", "$obj[$int]", "len($obj)", "$obj($int)",
        "int('1' + str(abs($int)))", "sorted($list, key=lambda e: -e)[0]", "[*$list, $int][0]", "{**$dict, 'z': $int}['z']",
        "collections.Counter($list).most_common(1)[0][1]", "$list.pop()", "$dict.setdefault($str, $int)", "$dict.pop($str, $int)",
        "operator.itemgetter(0)($list)", "math.prod($list) % 1009", "len([*zip($list, $tuple)])", "int.from_bytes(b'ab', 'big')",
        "collections.deque($list, 3)[0]", "sum(map(lambda e: e + 1, $list))", "[e for e in $list][-1]", "isinstance($any, int) + 0",
        "list(itertools.accumulate([$int, $int, $int]))[-1]", "$v_point.x", "Colour.RED.value", "len(list(itertools.chain($list, $tuple)))",
    ],
    "float": [
        "$float + $float", "$float - $int", "$float * 0.5", "$int / 4", "$float / $float", "float($int)", "abs($float)", "-$float",
        "math.floor($float) * 1.0", "$tensor.sum().item()", "($tensor + 0.0).max().item()", "float($tensor[0])", "round($float, 2)",
        "($float if $bool else $float)", "max($float, $float)", "math.sqrt(abs($float))", "float('2.5')", "divmod($float, 2.0)[0]",
        "$tensor.tolist()[1]", "math.copysign(2.0, $float)", "$float // 2",
    ],
    "str": [
        "($str + $str)[:12]", "($str * 2)[:12]", "f'{$int}'", "f'<{$str!r:>6}>'[:12]", "f'{$float:.2f}'", "$str.upper()", "$str[::-1]", "str($int)",
        "repr($list)[:12]", "'%d-%s' % ($int, $str)", "'{} {}'.format($int, $str)[:12]", "'-'.join(['a', $str])[:12]", "$str.replace('a', 'b')",
        "str($tuple)[:12]", "chr(97 + $int % 20)", "$str[1:]", "$str.strip()", "type($any).__name__", "repr($dict)[:12]", "$str.title()",
        "(','.join(str(e) for e in $list))[:12]", "f'{$bool}'", "repr($str)[:12]", "f'{$int:04d}'", "str(Colour.RED)", "$str.zfill(4)[:12]",
        "max($str, $str)", "sorted($dict)[0]", "f'{$tensor.tolist()}'[:12]", "str($none)", "$obj.name",
    ],
    "bool": [
        "$int < $int", "$int == $int", "$int != $int", "$float >= $float", "$str < $str", "$int in $list", "$str in $dict", "$str not in $dict",
        "not $bool", "$bool and $bool", "$bool or $bool", "$list == $list", "$any is None", "$list is $list", "$any is not $any", "0 < $int < 9",
        "isinstance($any, (int, str))", "hasattr($obj, $str)", "any(e > 1 for e in $list)", "all(e > 0 for e in $list)", "bool($list)", "bool($any)",
        "bool($tensor.sum() > $int)", "bool(($tensor > 0).any())", "torch.equal($tensor, $tensor)", "$set <= $set", "$tuple < $tuple", "callable($any)",
        "$tensor.dim() == 1", "torch.is_tensor($any)", "$str.startswith($str)", "$tensor is $tensor", "issubclass(type($any), object)",
        "$dict == $dict", "$set.isdisjoint($set)", "$any == $any", "$obj == $obj", "$obj < $obj", "$int in $obj", "$str.isdigit()",
    ],
    "list": [
        "[$int, $int]", "[$int, *$list][:6]", "($list + $list)[:6]", "$list[1:]", "$list[::-1]", "sorted($list)", "list($tuple)", "[e + $int for e in $list]",
        "[e for e in $list if e % 2]", "[e * g for e in $list[:2] for g in range(2)]", "list(range($int % 6))", "sorted($set)", "list($dict.values())",
        "$list.copy()", "list(reversed($list))", "list(map(lambda e: e - 1, $list))", "list(filter(None, $list))", "[$v_int for _ in range(2)]",
        "[a + c for a, c in zip($list, $list)]", "[i * e for i, e in enumerate($list)]", "list(gen($int % 4))", "list(itertools.islice(gen(5), $int % 4))",
        "list(collections.deque($list, 3))", "[int(e) for e in $tensor.tolist()]", "($list if $bool else $list)", "copy.copy($list)",
        "list(itertools.chain($list, $tuple))[:6]", "[*$set] and sorted($set)", "$list * 2 if len($list) < 3 else $list", "list($obj)", "$obj.items",
        "list(itertools.takewhile(lambda e: e < 3, $list))", "list(delegating($int % 3))", "sorted($list, reverse=True)", "[k for k, _ in itertools.groupby($list)]",
        "[(lambda: e)() for e in $list]", "[f() for f in [lambda e=e: e for e in $list]]", "[f() for f in [lambda: e for e in $list]]",
    ],
    "dict": [
        "{'a': $int, $str: $int}", "{**$dict, $str: $int}", "{str(e): e for e in $list}", "dict(a=$int)", "dict(zip(['a', 'bc'], $list))", "$dict.copy()",
        "($dict | $dict)", "{k: v + 1 for k, v in $dict.items()}", "dict(sorted($dict.items()))", "dict.fromkeys(['a', $str], $int)", "dict($dict)",
        "dict(collections.Counter(str($int)))", "dict(collections.OrderedDict(a=$int))", "collect(k=$int, **$dict)",
    ],
    "tuple": [
        "($int, $int)", "($int, *$list)[:6]", "tuple($list)", "($tuple + $tuple)[:6]", "$tuple[1:]", "divmod($int, $int)", "tuple(e for e in $list)",
        "tuple($tensor.shape)", "tuple(sorted($tuple))", "($int,)", "varargs($int, *$list)", "tuple(Point($int, $int))", "swap($int, $int)",
    ],
    "set": [
        "{$int, $int}", "set($list)", "$set | $set", "$set & $set", "$set - $set", "{e % 3 for e in $list}", "$set ^ $set", "set(map(abs, $list))",
        "set(frozenset($list))", "$set.union($list)",
    ],
    "tensor": [
        "$tensor + $int", "$tensor - $tensor", "($tensor * 2).clamp(-50, 50)", "($tensor * $tensor).clamp(-50, 50)", "torch.relu($tensor)", "-$tensor",
        "$tensor.abs()", "torch.where($tensor > 0, $tensor, -$tensor)", "$tensor.flip(0)", "torch.stack([$tensor, $tensor]).sum(0).clamp(-50, 50)",
        "$tensor.clone()", "$tensor[:]", "$tensor.view(3)", "(torch.maximum($tensor, $tensor) + 0.0)", "torch.cat([$tensor, $tensor])[1:4]", "torch.full((3,), $int) * 1.0",
        "$tensor + $tensor[0]", "($tensor if $bool else $tensor)", "$tensor.cumsum(0).clamp(-50, 50)", "torch.tensor([$int, $int, $int]) * 1.0", "shift($tensor)",
        "$tensor.add(1)", "sum([$tensor, $tensor]).clamp(-50, 50)", "$tensor * $bool", "$tensor.unsqueeze(0).squeeze(0)", "torch.sort($tensor).values", "1 - $tensor",
        "$tensor.sum() + torch.zeros(3)", "next(iter([$tensor]))", "[$tensor, $tensor][0]", "{'t': $tensor}['t']", "torch.nn.functional.relu($tensor)", "model($tensor)",
    ],
    "obj": ["Node($int)", "Node($int, $list)", "Node.make($int)", "Record($int)", "Slotted($int)", "Ordered($int)", "Dynamic($int)", "Child($int)", "Described($int)"],
    "none": ["print($int, $str)", "LOG.append($any)", "SEEN.add($int)", "RECENT.append($any)", "$list.append($int)", "$list.sort()", "$dict.update(a=$int)", "$list.extend($list)", "store($int)"],
    "mixed": ["[$any, $any]", "[$v_any, $v_any]", "[[$v_any], $v_any]", "list($v_mixed)", "$v_mixed + [$any]", "{'m': $v_mixed}['m']", "[$v_list, $v_list]"],
    "point": ["Point($int, $int)", "Point(y=$int, x=$int)", "$v_point._replace(x=$int)", "Point(*[$int, $int])"],
    "ordered": ["collections.OrderedDict(b=$int, a=$int)", "collections.defaultdict(list, a=[$int])", "collections.Counter($str)", "collections.deque($list, maxlen=5)",
                "collections.defaultdict(int, a=$int)", "collections.ChainMap($dict, {'q': $int})"],
}

SIMPLE = [
    "$s_int = $int", "$s_int = $int", "$s_list = $list", "$s_tensor = $tensor", "$s_tensor = $tensor", "$s_dict = $dict", "$s_str = $str", "$s_float = $float",
    "$s_tuple = $tuple", "$s_set = $set", "$s_obj = $obj", "$s_mixed = $mixed", "$s_bool = $bool", "$s_point = $point", "$s_ordered = $ordered",
    "$v_int += $int", "$v_int -= 1", "$v_list += [$int]", "$v_tensor = $v_tensor + $int", "$v_tensor += 1", "$v_str += 'q'", "$v_set |= {$int}", "$v_dict |= {'w': $int}",
    "$s_int, $s_int = $int, $int", "$s_int, *$s_list = [$int, $int, $int]", "$s_int, $s_int = $tuple", "$s_list, $s_list = $v_list, $v_list", "$s_list = $s_list = $list",
    "$v_list.append($int)", "$v_list[$int % 3] = $int", "$v_dict[$str] = $int", "del $v_list[0]", "del $v_dict[$str]", "$v_set.add($int)", "$v_set.discard($int)",
    "$v_list.insert($int, $int)", "$v_list.extend($list)", "$v_list[1:2] = $list", "$v_list.sort()", "$v_list.reverse()", "$v_list.remove($int)", "$v_list.clear()", "$v_dict.pop($str)",
    "$v_mixed.append($any)", "$v_mixed[0] = $any", "$s_any = $v_mixed[$int % 2]", "$v_dict.update($dict)", "$v_tensor.add_($int)", "$v_tensor[0] = $int", "$v_tensor.zero_()",
    "$v_tensor.mul_(-1)", "$v_obj.value = $int", "$v_obj.extra = $any", "$v_obj.value += $int", "$v_obj.items.append($int)", "setattr($v_obj, 'name', $str)", "del $v_obj.extra",
    "$s_any = $v_obj.extra", "$v_obj[$int] = $int", "$v_obj.twice = $int", "print($int, $str)", "print(f'{$any}')", "LOG.append($any)", "LOG.append(($int, $str))",
    "COUNT += $int", "COUNT = $int", "TABLE[$str] = $int", "TABLE['k'] = $any", "$s_int = COUNT", "STATE.value += 1", "STATE.seen = $any", "del $v_int",
    "assert $bool, $str", "assert $int is not None", "store($any)", "$s_int = $dict.popitem()[1]", "$s_any = LOG[-1]", "del TABLE[$str]", "$s_int = len(LOG)", "pass",
    "$v_ordered.update(a=$int)", "$v_ordered.append($int)", "$v_ordered['c'] += $int", "$v_ordered.pop('a')", "$v_ordered['d'] = $int", "$v_ordered.popleft()", "$v_ordered.move_to_end('a')",
    "$s_list = list($v_ordered)", "$v_ordered['a'].append($int)", "$s_obj = copy.copy($v_obj)", "$s_mixed = copy.deepcopy($v_mixed)", "$s_any = $call_any", "LOG.append(sys._getframe().f_lineno)",
    "$s_int = next($v_iter)", "$s_int = next($v_iter, $int)", "$s_list = list($v_iter)", "$s_iter = iter($list)", "$s_iter = gen($int % 4)", "$s_iter = zip($list, $list)",
    "$s_iter = map(lambda e: e + 1, $list)", "$s_iter = (e + 1 for e in $list)", "$s_iter = enumerate($list)", "$s_int = $v_func($int)", "$s_func = make_counter($int)",
    "$s_func = functools.partial(swap, $int)", "$s_func = lambda p: p + $v_int", "$s_func = $v_obj.bump", "$s_func = memo", "$s_any = $v_func($any)", "$s_list.append($v_list)",
    "$s_bool = $v_any is $v_any", "$s_bool = $v_list is $v_list", "$s_str = repr($v_any)[:30]", "torch.manual_seed(0); $s_tensor = torch.rand(3).round()", "$s_iter = iter($v_dict)",
    "$s_any = $v_dict.keys()", "$s_any = $v_dict.items()", "$s_any = slice($int, $int)", "$s_int = dispatch($any)", "$s_any = type($v_any)", "vars($v_obj)['late'] = $int",
    "SEEN.add($int)", "SEEN.discard($int)", "SEEN |= {$int}", "SEEN.update($list)", "$s_bool = $int in SEEN", "$s_int = len(SEEN)", "$s_list = sorted(SEEN)", "SEEN.remove($int)",
    "RECENT.append($any)", "RECENT.append($int)", "RECENT.appendleft($int)", "$s_any = RECENT.pop()", "$s_any = RECENT.popleft()", "$s_int = len(RECENT)", "RECENT.extend($list)",
    "$s_any = RECENT[0]", "RECENT.rotate($int % 3)", "RECENT[-1] = $any", "$s_list = list(RECENT)[:1] * 0", "GROUPS[$str].append($any)", "GROUPS[$int].append($int)",
    "$s_int = len(GROUPS)", "GROUPS.pop($str, None)", "$s_any = GROUPS.get($str)", "$s_bool = $str in GROUPS", "GROUPS.setdefault($str, $list)", "ORDER[$str] = $any",
    "ORDER.move_to_end($str)", "ORDER.move_to_end($str, last=False)", "$s_any = ORDER.popitem($bool)", "del ORDER[$str]", "$s_list = [len(k) for k in ORDER]", "ORDER.update($dict)",
    "LOG.pop()", "LOG[0] = $any", "LOG[-1:] = $list", "del LOG[0]", "LOG.insert($int, $str)", "LOG.reverse()", "LOG.clear()", "LOG += $list", "$s_int = len(LOG) + len(TABLE)",
    "$s_mixed = [LOG, TABLE]", "TABLE.setdefault($str, []).append($any)", "TABLE.update($dict)", "TABLE.clear()", "TABLE.pop($str)", "$s_any = TABLE.popitem()", "TABLE |= $dict",
    "$s_any = TABLE.keys()", "$s_list = [len(str(k)) for k in TABLE]", "TABLE[$tensor] = $int", "TABLE[($int, $str)] = $any", "$s_list = list(map(len, ORDER.values())) if 0 else $list",
    "$s_bool = LOG is $v_any", "TABLE['log'] = LOG", "LOG.append(TABLE)", "$s_str = repr(SEEN)[:20]", "COUNTS[$str] += $int", "COUNTS['n'] += 1", "$s_int = COUNTS[$str]",
]

RAISING = [
    "raise ValueError($str)", "raise Problem($int, $str)", "raise KeyError($str) from None", "raise TypeError", "raise IndexError($int) from ValueError($str)",
    "fail($str)", "$s_int = 1 // 0", "$s_int = [][0]", "$s_any = $v_obj.missing", "$s_int = undefined_name", "$s_int = {}['no']", "$s_int = 'a' + 1", "$s_int = len(5)",
    "raise StopIteration($int)", "next(iter([]))", "int('x')", "raise Problem", "$s_int, $s_int = [1]", "swap(1)", "swap(1, 2, z=3)", "None()", "torch.ones(3) @ torch.ones(4)",
    "frozen.value = 1", "raise stored_error", "assert False", "raise 5", "for $s_int in 5: pass", "with 5: pass", "torch.ones(3).view(2)", "$v_tensor[7]",
]

COMPOUND = [
    "if $bool:\n    $block", "if $bool:\n    $block\nelse:\n    $block", "if $int > $int:\n    $block\nelif $bool:\n    $block\nelse:\n    $block",
    "if $tensor.sum() > $int:\n    $block\nelse:\n    $block", "if ($tensor > 1).all():\n    $block", "if $any:\n    $block",
    "for $s_int in $list:\n    $loop", "for $s_int in range(3):\n    $loop", "for $s_int in range(3):\n    $loop\nelse:\n    $block",
    "for $s_int, $s_int in zip($list, $tuple):\n    $loop", "for $s_str, $s_int in list($dict.items()):\n    $loop", "for $s_int in gen(3):\n    $loop",
    "for $s_int, $s_any in enumerate($mixed):\n    $loop", "for $s_str in $dict:\n    $loop", "for $s_tensor in [$tensor, $tensor]:\n    $loop", "for $s_any in $v_mixed:\n    $loop",
    "for $s_int in $v_iter:\n    $loop", "for $s_tensor in torch.stack([$tensor, $tensor]):\n    $loop", "for $s_int in $obj:\n    $loop",
    "$new = 0\nwhile $new < 3:\n    $new += 1\n    $loop", "$new = 0\nwhile $bool and $new < 3:\n    $new += 1\n    $loop\nelse:\n    $block",
    "$new = 0\nwhile True:\n    $new += 1\n    if $new > 3 or $bool:\n        break\n    $loop", "$new = 0\nwhile $v_tensor.sum() < 20 and $new < 4:\n    $new += 1\n    $v_tensor = $v_tensor + 1\n    $loop",
    "try:\n    $block\nexcept Exception as error:\n    LOG.append((type(error).__name__, str(error)))\n    $block", "try:\n    $danger\nexcept Exception as error:\n    LOG.append(lines(error))\n    $block",
    "try:\n    $danger\nexcept (ValueError, Problem) as error:\n    print(error)\n    $block\nexcept KeyError:\n    $block", "try:\n    $danger\nexcept ValueError:\n    $block\nelse:\n    $block\nfinally:\n    $safe",
    "try:\n    $block\nfinally:\n    $safe", "try:\n    $danger\nfinally:\n    $safe", "try:\n    $danger\nexcept Exception as error:\n    $safe\n    raise",
    "try:\n    $danger\nexcept Exception as error:\n    raise Problem($int, $str) from error", "try:\n    $danger\nexcept Exception:\n    raise RuntimeError($str)",
    "try:\n    try:\n        $danger\n    finally:\n        $safe\nexcept Exception as error:\n    LOG.append(repr(error))", "try:\n    $danger\nexcept* ValueError as group:\n    LOG.append(len(group.exceptions))",
    "try:\n    $danger\nexcept Exception as error:\n    stored = error\n    $block\n    LOG.append(type(stored.__context__).__name__)",
    "with Manager($str) as $s_any:\n    $block", "with Manager($str), Manager($str):\n    $block", "with Swallow() as $s_any:\n    $danger", "with managed($int) as $s_int:\n    $block",
    "with managed($int):\n    $danger", "with contextlib.suppress(ValueError, KeyError):\n    $danger", "with contextlib.ExitStack() as $new:\n    $new.enter_context(Manager($str))\n    $new.callback(LOG.append, $int)\n    $block",
    "with torch.no_grad():\n    $block", "with contextlib.nullcontext($int) as $s_int:\n    $block", "with Manager('a'):\n    $danger", "with torch.enable_grad():\n    $block",
    "match $any:\n    case 0 | 1:\n        $block\n    case [$s_any, *$s_any]:\n        $block\n    case {'a': $s_any}:\n        $block\n    case Node(value=$s_any):\n        $block\n    case str() as $s_str:\n        $block\n    case _:\n        $block",
    "match $int:\n    case 1:\n        $block\n    case $s_int if $bool:\n        $block", "match $point:\n    case Point(x=0):\n        $block\n    case Point($s_int, $s_int):\n        $block",
    "match ($int, $str):\n    case ($s_int, 'a'):\n        $block\n    case (0, $s_str):\n        $block",
    "def $new(p, q=$int, *rest, k=$int, **more):\n    $function\n$s_int = $new($int)", "def $new(p):\n    nonlocal $v_int\n    $v_int += p\n    $function\n$s_any = $new($int)",
    "def $new():\n    nonlocal $v_list\n    $v_list = $list\n    return $v_list\n$s_list = $new()", "def $new(n):\n    if n <= 0:\n        return 0\n    $safe\n    return n + $new(n - 1)\n$s_int = $new(3)",
    "def $new(n):\n    for i in range(n):\n        got = yield i + $int\n        LOG.append(got)\n    return $int\n$s_iter = $new(3)", "def $new():\n    try:\n        yield $int\n        $safe\n        yield $int\n    finally:\n        LOG.append('closed')\nfor $s_int in $new():\n    $loop",
    "def $new():\n    $s_int = yield from gen(2)\n    yield $int\n$s_list = list($new())", "class $new:\n    shared = $any\n    def __init__(self, p):\n        self.p = p\n    def get(self):\n        return self.p\n$s_any = $new($int).get()",
    "$s_func = lambda p: (p, $v_any)", "$new = gen(3)\n$s_int = next($new)\n$block\n$s_list = list($new)", "$new = echo()\nnext($new)\n$s_any = $new.send($any)\n$new.close()",
    "$new = echo()\nnext($new)\ntry:\n    $s_any = $new.throw(ValueError($str))\nexcept Exception as error:\n    LOG.append(repr(error))", "async def $new():\n    return $int\ntry:\n    $new().send(None)\nexcept StopIteration as stop:\n    $s_int = stop.value",
    "@decorated\ndef $new(p):\n    return p + $int\n$s_int = $new($int)", "$s_list = []\n$s_func = $v_list.append\n$v_func($int)",
]

COMPOUND += [
    "for $s_any in ORDER:\n    $loop", "for $s_any in RECENT:\n    $loop", "for $s_any in list(TABLE.items()):\n    $loop", "for $s_any in LOG[:2]:\n    $loop",
    "for $s_any in TABLE.values():\n    $loop", "if $int not in SEEN:\n    SEEN.add($int)\n    $block",
    "with swallowing(ValueError, KeyError, TypeError) as $s_int:\n    $danger", "with managed($int) as $s_int, swallowing(Exception):\n    $danger",
    "with translating():\n    $block", "with swallowing(Exception), translating() as $s_any:\n    $danger",
    "with contextlib.ExitStack() as $new:\n    $s_int = $new.enter_context(managed($int))\n    $new.push(lambda kind, *rest: LOG.append(kind))\n    $block",
    "with contextlib.ExitStack() as $new:\n    $new.enter_context(swallowing(Exception))\n    $s_int = $new.enter_context(managed($int))\n    $danger",
    "$new = handling($int)\n$s_int = next($new)\n$block\nLOG.append(repr(sys.exc_info()[1]))\n$s_list = list($new)",
    "try:\n    raise IndexError($str)\nexcept IndexError:\n    $new = handling($int)\n    $s_int = next($new)\n    $block\n    LOG.append(next($new))\n    LOG.append(repr(sys.exc_info()[1]))",
    "$new = delegating(3)\n$s_int = next($new)\n$block\n$new.close()", "$new = managed($int)\n$s_int = $new.__enter__()\n$block\n$new.__exit__(None, None, None)",
]

# What a function that can be suspended does besides, by the kind of function.
SUSPENDING = {
    "generator": ["yield $any", "LOG.append((yield $any))", "$s_int = yield $int", "yield from $list", "$s_any = yield from delegating(2)"],
    "coroutine": ["LOG.append(await suspend($any))", "$s_any = await added($int, $any)", "$s_int = await waiting(2)", "$s_list = [p async for p in counted(2)]"],
    "async generator": ["yield $any", "LOG.append((yield $any))", "$s_any = await added($int, $any)", "LOG.append(await suspend($int))"],
}

LEAVING = ["return $any", "return $any, $any", "return $v_mixed"]
IN_LOOP = ["break", "continue", "if $bool:\n    break", "if $int > 2:\n    continue"]

PRELUDE = '''
import collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator, sys, traceback, types
import torch

COUNT, LOG, TABLE = 0, [], {'a': 1}
SEEN, RECENT, GROUPS = {1, 2}, collections.deque([1, 2], maxlen=4), collections.defaultdict(list, a=[1])
ORDER, COUNTS = collections.OrderedDict(a=1, bc=2, xyz=3), collections.Counter('ab')
stored_error = LookupError("kept")

def lines(error):
    if isinstance(error, UnboundLocalError):
        return []  # see the runner
    return [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]

class Problem(Exception):
    def __init__(self, number=0, text=""):
        super().__init__(number, text)
        self.number = number
    def __str__(self): return f"problem {self.number}"

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()
    def norm(self): return abs(self.x) + abs(self.y)

class Descriptor:
    def __set_name__(self, owner, name): self.key = "_" + name
    def __get__(self, instance, owner=None):
        return self if instance is None else instance.__dict__.get(self.key, 0)
    def __set__(self, instance, value):
        LOG.append(("set", self.key))
        instance.__dict__[self.key] = value

class Node:
    kind = "node"
    def __init__(self, value, items=None):
        self.value, self.items = value, [] if items is None else items
    @property
    def twice(self): return self.value * 2
    @twice.setter
    def twice(self, value): self.value = value // 2
    @classmethod
    def make(cls, value): return cls(value + 1)
    @staticmethod
    def fixed(): return 4
    @property
    def name(self): return getattr(self, "_name", self.kind)
    @name.setter
    def name(self, value): self._name = value
    def bump(self, by=1):
        self.value += by
        return self.value
    def __call__(self, value): return self.value + value
    def __len__(self): return len(self.items)
    def __getitem__(self, index): return self.items[index]
    def __setitem__(self, index, value): self.items[index] = value
    def __iter__(self): return iter(self.items)
    def __repr__(self): return f"{type(self).__name__}({self.value})"

class Child(Node):
    kind = "child"
    def bump(self, by=2): return super().bump(by) + 1
    def __bool__(self): return self.value > 0

# Classes without a __repr__ show their addresses, which are used again: whether two such texts are alike is chance.
class Slotted:
    __slots__ = ("value", "items", "extra")
    def __init__(self, value): self.value, self.items = value, [value]
    name = "slotted"
    twice = property(lambda self: self.value * 2)
    def bump(self, by): return self.value + by
    def __repr__(self): return f"Slotted({self.value})"

class Described(Node):
    value = Descriptor()

@functools.total_ordering
class Ordered(Node):
    def __eq__(self, other): return isinstance(other, Node) and self.value == other.value
    def __lt__(self, other): return self.value < other.value if isinstance(other, Node) else NotImplemented
    def __hash__(self): return hash(self.value)
    def __contains__(self, value): return value == self.value
    def __add__(self, other): return Ordered(self.value + (other.value if isinstance(other, Node) else other))
    __radd__ = __add__

class Dynamic:
    def __init__(self, value): self.value, self.items = value, [1, value]
    def __getattr__(self, name):
        if name in ("twice", "name"): return 2 if name == "twice" else "dynamic"
        raise AttributeError(name)
    def __setattr__(self, name, value): object.__setattr__(self, name, value)
    def __getitem__(self, key): return (key, self.value)[1]
    def bump(self, by): self.value += by; return self.value
    def __repr__(self): return f"Dynamic({self.value})"

@dataclasses.dataclass
class Record:
    value: int
    items: list = dataclasses.field(default_factory=list)
    name: str = "record"
    def __post_init__(self): self.twice = self.value * 2
    def bump(self, by): self.value += by; return self.value

@dataclasses.dataclass(frozen=True)
class Frozen:
    value: int = 3
frozen = Frozen()

class Manager:
    def __init__(self, name): self.name = name
    def __enter__(self):
        LOG.append("enter " + self.name)
        return self
    def __exit__(self, kind, value, tb):
        LOG.append(("exit", self.name, kind and kind.__name__))
        return kind is KeyError

class Swallow(Manager):
    def __init__(self): super().__init__("swallow")
    def __exit__(self, kind, value, tb):
        super().__exit__(kind, value, tb)
        return True

@contextlib.contextmanager
def managed(value):
    LOG.append("before")
    try:
        yield value
    finally:
        LOG.append("after")

@contextlib.contextmanager
def swallowing(*kinds):
    try:
        yield len(kinds)
    except kinds as error:
        LOG.append(str(error))

@contextlib.contextmanager
def translating():
    with torch.no_grad():
        try:
            yield torch.is_grad_enabled()
        except KeyError as error:
            raise ValueError("translated") from error

def handling(n):
    try:
        raise KeyError(n)
    except KeyError as error:
        yield n
        LOG.append(repr(sys.exc_info()[1]))
        yield repr(error)
    yield repr(sys.exc_info()[1])

@types.coroutine
def suspend(value):
    return (yield value)

async def added(a, b):
    return [a, b]

async def waiting(n):
    for i in range(n):
        LOG.append(await suspend(i))
    return n

async def counted(n):
    for i in range(n):
        await suspend("counted")
        yield i

def gen(n):
    for i in range(n):
        yield i

def echo():
    got = None
    while True:
        try:
            got = yield got
        except ValueError as error:
            got = str(error)

def delegating(n):
    yield from gen(n)
    yield n

def make_counter(start):
    count = start
    def counter(by=1):
        nonlocal count
        count += by if isinstance(by, int) else 1
        return count
    return counter

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        LOG.append(function.__name__)
        return function(*args, **kwargs)
    return wrapper

def swap(p, q): return q, p
def varargs(*args): return args[:6]
def collect(**kwargs): return dict(list(kwargs.items())[:4])
def fail(text): raise ValueError(text)
def store(value):
    global COUNT
    COUNT += 1
    TABLE["stored"] = value
def shift(tensor, by=1): return tensor + by
@functools.lru_cache
def memo(value): return value
@functools.singledispatch
def dispatch(value): return 0
@dispatch.register
def _(value: int): return 1
@dispatch.register
def _(value: list): return 2

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.arange(3.0))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return (x + self.offset).clamp(-50, 50)
model = Model()
model.register_forward_hook(lambda module, args, out: LOG.append(len(args)))
STATE = Node(5)
'''
