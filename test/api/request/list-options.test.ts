import t from 'tap'
import { StatusError } from '../../../src/api/kube/status.ts'
import {
  watchOptionsOf,
  listOptionsOf,
  refuseVersionWithContinue,
  versionNumber,
  isExactList,
} from '../../../src/api/request/list-options.ts'

/** The code and the fields that a query is refused for; nothing where it is taken. */
function refusal(act: () => unknown): string {
  try {
    act()
    return ''
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const { code, details } = error.status
    return [code, ...(details?.causes ?? []).map(({ field }) => field)].join(' ')
  }
}

const query = (text: string) => new URLSearchParams(text)
const match = 'resourceVersionMatch'

void t.test('options of a list are checked as an API server checks them', async (t) => {
  for (const [text, refused] of [
    ['', ''],
    ['resourceVersion=5&limit=2', ''],
    [`resourceVersion=5&${match}=Exact`, ''],
    [`resourceVersion=5&${match}=NotOlderThan`, ''],
    [`resourceVersion=0&${match}=NotOlderThan`, ''],
    [`resourceVersion=0&${match}=Exact`, `422 ${match}`],
    [`${match}=Exact`, `422 ${match}`],
    [`resourceVersion=5&${match}=Newest`, `422 ${match}`],
    [`resourceVersion=5&${match}=Exact&continue=c`, `422 ${match}`],
    [`${match}=Newest&continue=c`, `422 ${match} ${match} ${match}`],
    ['sendInitialEvents=true', '422 sendInitialEvents'],
    ['limit=many', '400'],
    ['timeoutSeconds=1.5', '400'],
  ] as const)
    t.equal(
      refusal(() => listOptionsOf(query(text), false, true)),
      refused,
      text,
    )
})

void t.test('watch options are validated by the server’s features', async (t) => {
  for (const [text, served, unserved = served] of [
    ['', ''],
    ['resourceVersion=5', ''],
    ['resourceVersion=5&continue=c', ''],
    ['resourceVersion=0&continue=c', `422 ${match}`, ''],
    ['continue=c', `422 ${match}`, ''],
    [`${match}=NotOlderThan`, `422 ${match}`],
    [`sendInitialEvents=true&${match}=NotOlderThan`, '', '422 sendInitialEvents'],
    [
      `sendInitialEvents=true&${match}=Exact`,
      `422 ${match} ${match}`,
      `422 ${match} sendInitialEvents ${match}`,
    ],
    ['sendInitialEvents=false', `422 ${match}`, `422 ${match} sendInitialEvents`],
    [
      `sendInitialEvents=true&${match}=NotOlderThan&continue=c`,
      `422 ${match}`,
      `422 sendInitialEvents ${match}`,
    ],
  ] as const) {
    t.equal(
      refusal(() => listOptionsOf(query(text), true, true)),
      served,
      text,
    )
    t.equal(
      refusal(() => listOptionsOf(query(text), true, false)),
      unserved,
      text,
    )
    t.equal(watchOptionsOf(query(text)) !== undefined, served === '', text)
  }
})

void t.test('a version is a number, and a page has its own', async (t) => {
  t.equal(versionNumber('', 'list'), 0)
  t.equal(versionNumber('12', 'get'), 12)
  for (const text of ['x', '-1', '1.5', '9'.repeat(20)]) {
    t.equal(
      refusal(() => versionNumber(text, 'list')),
      '400',
      text,
    )
    t.equal(
      refusal(() => versionNumber(text, 'watch')),
      '500',
      text,
    )
  }
  const options = (text: string) => listOptionsOf(query(text), false, true)
  t.equal(
    refusal(() => refuseVersionWithContinue(options('continue=c&resourceVersion=5'))),
    '400',
  )
  for (const text of ['continue=c', 'continue=c&resourceVersion=0', 'resourceVersion=5'])
    t.equal(
      refusal(() => refuseVersionWithContinue(options(text))),
      '',
      text,
    )
  t.strictSame(
    [
      `resourceVersion=5&${match}=Exact`,
      'resourceVersion=5&limit=1',
      `resourceVersion=5&${match}=NotOlderThan&limit=1`,
      'resourceVersion=5',
    ].map((text) => isExactList(options(text))),
    [true, true, false, false],
  )
})
