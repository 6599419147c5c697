import t from 'tap'
import { EventEmitter } from 'node:events'
import { mock } from 'node:test'
import { turn } from '../../src/base/clock.ts'
import { createLog } from '../../src/cli/log.ts'
import { superviseHub, type RunningHub, type Supervision } from '../../src/cli/supervise.ts'
import { readConfig, type HubConfig } from '../../src/config/config.ts'

function configured(argv: readonly string[] = []): HubConfig {
  const result = readConfig({
    argv: ['--server-addr=https://a', ...argv],
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
    hostname: 'n',
    readFile: () => '',
  })
  if ('mistakes' in result) throw new Error(result.mistakes.join())
  return result.config
}

/** A hub whose life the test decides. */
function stage(dispose: () => Promise<void> = async () => undefined) {
  const config = configured()
  const lines: string[] = []
  const exits: number[] = []
  const signals = new EventEmitter()
  const started = Promise.withResolvers<void>()
  const hub: RunningHub = {
    reconfigure: () => undefined,
    rejectConfig: () => undefined,
    [Symbol.asyncDispose]: dispose,
  }
  const supervision: Supervision = {
    log: createLog('info', { write: (line) => lines.push(line) }),
    startHub: async () => {
      started.resolve()
      return hub
    },
    signals,
    exit: (code) => exits.push(code),
    killLater: () => undefined,
    follow: () => ({ read: () => undefined, [Symbol.dispose]: () => undefined }),
  }
  return { lines, exits, signals, supervision, config, started: started.promise }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  void t.test(`${signal} drains the hub and ends with 0`, async (t) => {
    let disposed = 0
    const { signals, supervision, config, exits, started } = stage(async () => {
      disposed++
    })
    const code = superviseHub(config, supervision)
    await started
    signals.emit(signal, signal)
    t.equal(await code, 0)
    t.equal(disposed, 1)
    t.strictSame(exits, [])
    t.equal(signals.listenerCount(signal), 0, 'nothing is left listening')
  })
}

void t.test('a second signal ends the process at once', async (t) => {
  const draining = Promise.withResolvers<void>()
  const { signals, supervision, config, exits, started } = stage(() => draining.promise)
  const code = superviseHub(config, supervision)
  await started
  signals.emit('SIGTERM', 'SIGTERM')
  t.strictSame(exits, [])
  signals.emit('SIGINT', 'SIGINT')
  t.strictSame(exits, [1])
  draining.resolve()
  await code
})

void t.test('a signal while the hub is starting stops it as soon as it has', async (t) => {
  const { signals, supervision, config } = stage()
  const code = superviseHub(config, supervision)
  signals.emit('SIGTERM', 'SIGTERM')
  t.equal(await code, 0)
})

void t.test('a hub that cannot start exits 1 with the reason', async (t) => {
  const { supervision, config, lines } = stage()
  const busy = Object.assign(new Error('address already in use'), { code: 'EADDRINUSE' })
  const code = await superviseHub(config, {
    ...supervision,
    startHub: () => Promise.reject(busy),
  })
  t.equal(code, 1)
  t.match(lines.at(-1), /"level":"fatal".*EADDRINUSE.*the hub cannot run/)
})

void t.test('a hub that does not stop in time is killed', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const forever = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const { signals, supervision, started, lines } = stage(() => {
    entered.resolve()
    return forever.promise
  })
  const code = superviseHub(configured(['--shutdown-grace-period=1s']), supervision)
  await started
  signals.emit('SIGTERM', 'SIGTERM')
  await entered.promise
  mock.timers.tick(6000)
  t.equal(await code, 1)
  t.match(lines.at(-1), /did not stop in time/)
})

void t.test('SIGTERM ends a start that hangs, after the grace period', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { signals, supervision, exits, lines } = stage()
  const kills: number[] = []
  void superviseHub(configured(['--shutdown-grace-period=1s']), {
    ...supervision,
    startHub: () => new Promise(() => undefined),
    killLater: (ms) => kills.push(ms),
  })
  signals.emit('SIGTERM', 'SIGTERM')
  t.strictSame(kills, [8000], 'three seconds later, if it has no turn to end by itself')
  mock.timers.tick(4999)
  t.strictSame(exits, [])
  mock.timers.tick(1)
  t.strictSame(exits, [1])
  t.match(lines.at(-1), /did not stop in time/)
})

void t.test('SIGUSR2, which once restarted the hub, ends nothing', async (t) => {
  const { signals, supervision, config, started, lines } = stage()
  const code = superviseHub(config, supervision)
  await started
  signals.emit('SIGUSR2', 'SIGUSR2')
  await turn()
  t.match(lines.at(-1), /SIGUSR2 has no effect any more: restart the hub by what runs it/)
  signals.emit('SIGTERM', 'SIGTERM')
  t.equal(await code, 0)
})
