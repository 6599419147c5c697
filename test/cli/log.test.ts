import t from 'tap'
import { Secret } from '../../src/base/secret.ts'
import { createLog } from '../../src/cli/log.ts'
import { StoreFailure } from '../../src/hub/store/store.ts'
import { setClock } from '../kit/set-clock.ts'
import type { LogLevel } from '../../src/config/config.ts'

function logged(level: LogLevel = 'info') {
  const lines: string[] = []
  return { lines, log: createLog(level, { write: (line) => lines.push(line) }) }
}

void t.test('a line is JSON with time, level and message', async (t) => {
  const { lines, log } = logged()
  log.info({ upstream: 'https://a' }, 'healthy')
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 'info',
    time: /^\d{4}-\d\d-\d\dT.*Z$/,
    upstream: 'https://a',
    msg: 'healthy',
  })
})

void t.test('messages below the level are not logged', async (t) => {
  const { lines, log } = logged('warn')
  log.info('no')
  log.warn('yes')
  t.equal(lines.length, 1)
})

void t.test('log lines have no token or key', async (t) => {
  const { lines, log } = logged()
  const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl'
  const key = '-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----'
  log.info({ headers: { authorization: `Bearer ${token}` }, token: 'c2lnbmF0dXJl' }, 'a request')
  log.info({ raw: ['Authorization', 'Bearer c2lnbmF0dXJl'] }, 'a flat list of headers')
  log.info({ url: `/x?access_token=${token}` }, `a message with ${token}`)
  log.error(
    { err: new Error(`with ${key}`, { cause: new Error('bearer c2lnbmF0dXJl') }) },
    'failed',
  )
  log.info({ protocol: 'base64url.bearer.authorization.k8s.io.c2lnbmF0dXJl' }, 'a WebSocket')
  log.info({ credentials: new Secret('c2lnbmF0dXJl') }, 'held')
  t.equal(lines.length, 6)
  t.notMatch(lines.join(''), /c2lnbmF0dXJl|c2VjcmV0/)
  for (const line of lines) t.doesNotThrow(() => JSON.parse(line))
})

void t.test('an error is logged with its code and its cause', async (t) => {
  const { lines, log } = logged()
  const cause = Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  log.error({ err: new Error('the store failed', { cause }) }, 'failed')
  t.match(JSON.parse(lines[0] ?? ''), {
    err: { message: 'the store failed', cause: { message: 'no space left', code: 'ENOSPC' } },
  })
})

void t.test('an expected error is logged with its causes, without a stack', async (t) => {
  const { lines, log } = logged()
  const disk = Object.assign(new Error('disk is full'), { code: 'ENOSPC', errno: -28 })
  log.error({ err: new StoreFailure('not written', { cause: disk }) }, 'failed')
  const { err } = JSON.parse(lines[0] ?? '') as { err: unknown }
  t.strictSame(err, {
    type: 'Error',
    code: 'STORE_FAILURE',
    message: 'not written',
    cause: { type: 'Error', code: 'ENOSPC', message: 'disk is full' },
  })
})

void t.test('a programming error is logged with its stack, however wrapped', async (t) => {
  for (const mistake of [
    new TypeError('x is not a function'),
    Object.assign(new TypeError('an argument'), { code: 'ERR_INVALID_ARG_TYPE' }),
    Object.assign(new Error('no such column'), { code: 'ERR_SQLITE_ERROR', errcode: 1 }),
  ]) {
    const { lines, log } = logged()
    log.error({ err: new StoreFailure('not written', { cause: mistake }) }, 'failed')
    t.match(JSON.parse(lines[0] ?? ''), { err: { cause: { stack: /log\.test/ } } })
  }
})

void t.test('a repeated error is logged once, and then each minute with its count', async (t) => {
  const clock = setClock(t, { once: true })
  const { lines, log } = logged()
  const full = new StoreFailure('not written')
  log.error({ err: full, kind: 'write' }, 'the store failed')
  for (let i = 0; i < 50; i++) log.error({ err: full, kind: 'write', i }, 'the store failed')
  log.error({ err: full, kind: 'read' }, 'the store failed')
  log.error({ err: new TypeError('x') }, 'the store failed')
  log.error({ err: new TypeError('x') }, 'the store failed')
  const brief = lines.map((line) => {
    const { kind, times, err } = JSON.parse(line) as Record<string, { type?: string }>
    return [kind, times, err?.type]
  })
  t.strictSame(brief, [
    ['write', undefined, 'Error'],
    ['read', undefined, 'Error'],
    [undefined, undefined, 'TypeError'],
    [undefined, undefined, 'TypeError'],
  ])
  clock.forward(59_000)
  log.error({ err: full, kind: 'write', i: 50 }, 'the store failed')
  t.equal(lines.length, 4)
  clock.forward(1_000)
  t.match(JSON.parse(lines[4] ?? ''), { kind: 'write', times: 51, i: 50 })
})

void t.test('a filter that fails at many objects is logged once a minute', async (t) => {
  const clock = setClock(t, { once: true })
  const { lines, log } = logged()
  for (let object = 0; object < 5_000; object++)
    log.error({ filter: 'one', err: new TypeError(`at ${object}`) }, 'a filter failed')
  log.error({ filter: 'other', err: new TypeError('x') }, 'a filter failed')
  t.equal(lines.length, 2)
  clock.forward(60_000)
  t.equal(lines.length, 3)
  t.match(JSON.parse(lines[2] ?? ''), { filter: 'one', times: 4_999 })
})
