import t from 'tap'
import {
  canonicalFieldSelector,
  canonicalLabelSelector,
  covers,
  isSelective,
  MalformedSelector,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  selectorOfName,
} from '../../../src/api/kube/selectors.ts'

const selects = (selector: string, labels?: Record<string, string>): boolean =>
  matchesLabels(parseLabelSelector(selector), (key) =>
    labels && Object.hasOwn(labels, key) ? labels[key] : undefined,
  )

const picks = (selector: string, fields: Record<string, string>): boolean =>
  matchesFields(parseFieldSelector(selector), (path) => fields[path])

void t.test('an empty label selector selects everything', async (t) => {
  t.ok(selects('', { a: '1' }))
  t.ok(selects(' ', undefined))
})

void t.test('each label operator selects as the API says', async (t) => {
  const labels = { app: 'web', tier: 'front', weight: '10', 'example.com/zone': 'z1', empty: '' }
  for (const yes of [
    'app=web',
    'app==web',
    'app = web',
    'app!=db',
    'none!=db',
    'app in (web,db)',
    'app in ( db , web )',
    'app notin (db)',
    'none notin (db)',
    'app',
    '!none',
    'weight>9',
    'weight<11',
    'example.com/zone=z1',
    'empty=',
    'empty in ()',
    'empty in (,x)',
    'empty in (x,)',
    'empty in (x,,y)',
    'empty in (x,,)',
    'empty in (,,)',
    'app=web,tier in (front),!none',
    'in notin (notin)',
  ]) {
    t.ok(selects(yes, labels), yes)
  }
  for (const no of [
    'app=db',
    'app!=web',
    'none=web',
    'app in (db)',
    'none in (db)',
    'app notin (web)',
    'none',
    '!app',
    'weight>10',
    'weight<10',
    'app>1',
    'none<1',
    'app=web,tier=back',
    'toString',
  ]) {
    t.notOk(selects(no, labels), no)
  }
})

void t.test('label numbers compare as numbers of 64 bits', async (t) => {
  t.ok(selects('n>9007199254740992', { n: '9007199254740993' }))
  t.notOk(selects('n>1', { n: '9223372036854775808' }), 'a label beyond 64 bits is no number')
})

void t.test('a malformed label selector is refused', async (t) => {
  for (const selector of [
    '(a,,)',
    '!!',
    '=a',
    'a,',
    ',a',
    'a=b c',
    '!a=b',
    'a b',
    'a in b',
    'a in',
    'a in (',
    'a in (b c)',
    'a in (b=c)',
    'a in (b))',
    'a=(b)',
    'a=!b',
    'a===b',
    'a>b',
    'a>',
    '-a',
    'k=-a',
    'k=a\u00a0',
    `k=${'a'.repeat(64)}`,
    'a/b/c',
    '/a',
    'a/',
    'A.example/a',
  ]) {
    t.throws(() => parseLabelSelector(selector), { code: 'MALFORMED_SELECTOR' }, selector)
  }
})

void t.test('equivalent label selectors have one canonical form', async (t) => {
  for (const spelling of ['b in (y,x),a=1', 'a==1,b in (x, y)', ' a in (1) , b in (x,y,x),a=1']) {
    t.equal(canonicalLabelSelector(spelling), 'a=1,b in (x,y)')
  }
  t.equal(
    canonicalLabelSelector('c notin (1),!b,a>1,a<5,d,e notin (2,1)'),
    '!b,a<5,a>1,c!=1,d,e notin (1,2)',
  )
  t.equal(canonicalLabelSelector(''), '')
  t.not(canonicalLabelSelector('a=1'), canonicalLabelSelector('a!=1'))
})

void t.test('canonical label selectors parse to themselves', async (t) => {
  for (const selector of ['a in (,x)', 'a=', 'x,!y,z>3', 'k notin (a,b)']) {
    const once = canonicalLabelSelector(selector)
    t.equal(canonicalLabelSelector(once), once)
  }
})

void t.test(
  'field selectors compare whole values, and a missing field reads as empty',
  async (t) => {
    const pod = { 'metadata.name': 'a', 'spec.nodeName': 'n' }
    t.ok(picks('', pod))
    t.ok(picks('metadata.name=a', pod))
    t.ok(picks('metadata.name==a,spec.nodeName!=m', pod))
    t.ok(picks('status.phase=', pod))
    t.ok(picks('status.phase!=Failed,', pod))
    t.notOk(picks('metadata.name!=a', pod))
    t.notOk(picks('metadata.name=a,spec.nodeName=m', pod))
  },
)

void t.test('escapes in field selectors stand for the character', async (t) => {
  t.strictSame(parseFieldSelector('a=x\\,y\\=z\\\\,b!=2'), [
    { field: 'a', operator: '=', value: 'x,y=z\\' },
    { field: 'b', operator: '!=', value: '2' },
  ])
  t.equal(canonicalFieldSelector('a==x\\,y\\=z\\\\'), 'a=x\\,y\\=z\\\\')
})

void t.test('a malformed field selector is refused in the words of the API server', async (t) => {
  for (const [selector, message] of [
    ['a', "invalid selector: 'a'; can't understand 'a'"],
    ['b=1,a', "invalid selector: 'b=1,a'; can't understand 'a'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a=\\n', 'invalid field selector: invalid escape sequence: \\n'],
    ['a=\\', 'invalid field selector: invalid escape sequence: \\'],
  ] as const) {
    t.throws(() => parseFieldSelector(selector), new MalformedSelector(message), selector)
  }
})

void t.test('equivalent field selectors have one canonical form', async (t) => {
  t.equal(canonicalFieldSelector('b==2,a=1,b=2'), 'a=1,b=2')
  t.equal(canonicalFieldSelector(''), '')
})

void t.test('a selector covers those that have all its requirements', async (t) => {
  const wider = (a: string, b: string, fields: readonly [string, string] = ['', '']) =>
    covers(
      { labelSelector: a, fieldSelector: fields[0] },
      { labelSelector: b, fieldSelector: fields[1] },
    )
  t.ok(wider('', 'app=a'))
  t.ok(wider('', '', ['', 'metadata.name=a']))
  t.ok(wider('app in (b,a),x', 'y, x, app in (a, b)'))
  t.ok(wider('', '', ['a==1', 'b=2,a=1']))
  t.notOk(wider('app=a', ''))
  t.notOk(wider('app in (a,b)', 'app=a'), 'it would, but that is not looked for')
  t.notOk(wider('', '', ['a=1,b=2', 'a=1']))
  t.notOk(wider('', '', ['a=1', 'a!=1']))
})

void t.test('an object leaves a collection by name only when it is deleted', async (t) => {
  const leaves = (fieldSelector: string, labelSelector = ''): boolean =>
    isSelective({ labelSelector, fieldSelector })
  for (const name of ['a', 'a=b', 'a,b', 'a\\b']) t.notOk(leaves(selectorOfName(name)), name)
  t.notOk(leaves('metadata.name=a,metadata.namespace=b'))
  t.ok(leaves('metadata.name=a,spec.b=c'))
  t.ok(leaves('metadata.name!=a'))
  t.ok(leaves('', 'a'))
})

void t.test('selectorOfName() escapes the name', async (t) => {
  for (const name of ['a', 'a=b', 'a,b', 'a\\b', '?watch=true,x']) {
    t.match(parseFieldSelector(selectorOfName(name)), [
      { field: 'metadata.name', operator: '=', value: name },
    ])
  }
})
