import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepProcessAlive, turn } from '../../src/base/clock.ts'
import { RecentLines } from '../../src/base/recent-items.ts'
import { alsoTo, createLog, recentLogBounds } from '../../src/cli/log.ts'
import type { HubConfig } from '../../src/config/config.ts'
import { startHub, type Hub } from '../../src/hub/hub.ts'
import type { AnswerLine } from '../../src/hub/pipeline/trace.ts'
import { Client, type ClientOptions } from './client.ts'
import { startCloud, type CloudServer } from './cloud.ts'
import { until } from './until.ts'
import { Condition } from './condition.ts'
import { ChildHub } from './hub-child.ts'
import { hubFlags, testConfig, type TestHubOptions } from './hub-config.ts'
import { shareServingCertificate } from './hub-pki.ts'
import { rootFolder } from './root-folder.ts'
import type { Teardown } from './wire/wire.ts'

export { startCloud, type CloudServer } from './cloud.ts'
export { filesIn, rootFolder } from './root-folder.ts'
export type { TestHubOptions } from './hub-config.ts'

/** A hub in this process. */
export class TestHub {
  readonly rootDir: string
  readonly #options: TestHubOptions
  #hub: Hub | undefined
  #config: HubConfig | undefined
  #online: boolean | undefined
  readonly #condition = new Condition()
  /** Log lines, of every level unless the options name one. */
  readonly lines: string[] = []
  /** Answers that have ended. */
  readonly answers: AnswerLine[] = []

  constructor(rootDir: string, options: TestHubOptions) {
    this.rootDir = rootDir
    this.#options = options
  }

  get hub(): Hub {
    if (!this.#hub) throw new Error('the hub is not running')
    return this.#hub
  }

  get config(): HubConfig {
    if (!this.#config) throw new Error('the hub has never run')
    return this.#config
  }

  get url(): string {
    return `http://127.0.0.1:${this.hub.proxyPort}`
  }

  get secureUrl(): string {
    return `https://127.0.0.1:${this.hub.proxySecurePort}`
  }

  /** The certificate of the hub's authority. */
  get ca(): string {
    return readFileSync(join(this.config.rootDir, 'pki', 'ca.crt'), 'utf8')
  }

  async start(): Promise<this> {
    const { config: changes } = this.#options
    const config = testConfig(hubFlags(this.rootDir, this.#options), changes)
    this.#config = config
    this.#online = undefined
    if (!this.#options.ownCertificates) await shareServingCertificate(config)
    const recentLog = new RecentLines(recentLogBounds)
    this.#hub = await startHub(config, {
      log: createLog(
        this.#options.logLevel ?? 'trace',
        alsoTo(recentLog, {
          write: (line) => {
            this.lines.push(line)
            this.#condition.changed()
          },
        }),
      ),
      recentLog,
      onOnline: (online) => {
        this.#online = online
        this.#condition.changed()
      },
      onAnswer: (line) => {
        this.answers.push(line)
        this.#condition.changed()
      },
    })
    return this
  }

  async stop(): Promise<void> {
    const hub = this.#hub
    this.#hub = undefined
    // A stop may wait for a timer, once nothing else keeps the process alive.
    using _alive = keepProcessAlive()
    await hub?.[Symbol.asyncDispose]()
  }

  /** Restarts the hub with the same state, on other ports. */
  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  /** Resolves once the hub is offline. */
  offline(): Promise<void> {
    return this.#condition.until(() => this.#online === false)
  }

  online(): Promise<void> {
    return this.#condition.until(() => this.#online === true)
  }

  /** Resolves with the first matching answer that has ended. */
  async answered(match: (line: AnswerLine) => boolean): Promise<AnswerLine> {
    await this.#condition.until(() => this.answers.some(match))
    return this.answers.find(match) as AnswerLine
  }

  /** Resolves once a line of the log holds `text`. */
  logged(text: string): Promise<void> {
    return this.logs(() => this.lines.some((line) => line.includes(text)))
  }

  /** Resolves once a condition on the log holds. */
  logs(holds: () => boolean): Promise<void> {
    return this.#condition.until(holds)
  }

  as(component: string, options: Partial<ClientOptions> = {}): Client {
    return new Client({ url: this.url, component, ...options })
  }

  /** A program at the TLS proxy, showing this certificate. */
  securelyAs(
    component: string,
    shown?: { readonly certificate: string; readonly key: string },
    options: Partial<ClientOptions> = {},
  ): Client {
    const tls = { ca: this.ca, ...(shown && { cert: shown.certificate, key: shown.key }) }
    return new Client({ url: this.secureUrl, component, tls, ...options })
  }

  /** The token for inspections. */
  get inspectTokenFile(): string {
    return join(this.config.rootDir, 'inspect.token')
  }

  /** A client of the operations port with the token for inspections. */
  get ops(): Client {
    return new Client({
      url: `http://127.0.0.1:${this.hub.opsPort}`,
      component: 'prober',
      token: readFileSync(this.inspectTokenFile, 'utf8'),
    })
  }

  /** What its readiness checks say. */
  async readyz(): Promise<string> {
    return (await this.ops.get('/readyz?verbose')).body.toString()
  }

  /**
   * A sample of the metrics as they are now, by its name and labels as they are written there; 0
   * where there is none. Scrapes share an exposition for a second, which this does not. All that
   * waits has its turn first, so that a test may look again and again.
   */
  async metric(sample: string): Promise<number> {
    await turn()
    const { body } = await this.hub.metrics.exposition()
    const line = body.split('\n').find((each) => each.startsWith(`${sample} `))
    return Number(line?.slice(sample.length + 1) ?? 0)
  }

  /**
   * Resolves once a sample of the metrics has this value: for what moves after its client has its
   * answer.
   */
  async reaches(sample: string, value: number): Promise<void> {
    let seen = NaN
    await until(
      `${sample} ${value}`,
      async () => {
        seen = await this.metric(sample)
        return seen === value
      },
      { seconds: 30, describe: () => seen },
    )
  }
}

/** Pulls the plug; resolves when the hub knows. */
export async function goOffline(cloud: CloudServer, hub: Pick<TestHub, 'offline'>): Promise<void> {
  await cloud.unplug()
  await hub.offline()
}

/** Plugs it in again; resolves when the hub knows. */
export async function goOnline(cloud: CloudServer, hub: Pick<TestHub, 'online'>): Promise<void> {
  await cloud.plug()
  await hub.online()
}

/** A hub in this process, gone with the test. */
export async function startTestHub(t: Teardown, options: TestHubOptions): Promise<TestHub> {
  const hub = new TestHub(rootFolder(t), options)
  t.teardown(() => hub.stop())
  await hub.start()
  return hub
}

/** The same, once it has reached an API server. */
export async function startOnlineHub(t: Teardown, options: TestHubOptions): Promise<TestHub> {
  const hub = await startTestHub(t, options)
  await hub.online()
  return hub
}

interface OnlineNode {
  readonly cloud: CloudServer
  readonly hub: TestHub
}

/** A cloud with pods of these names, and a hub that has reached it. */
export const onlineNode = (t: Teardown, ...names: string[]): Promise<OnlineNode> =>
  onlineNodeWith(t, {}, ...names)

/** The same, of a hub with these options. */
export async function onlineNodeWith(
  t: Teardown,
  options: Omit<TestHubOptions, 'upstreams'>,
  ...names: string[]
): Promise<OnlineNode> {
  const cloud = await startCloud(t)
  cloud.addPods(...names)
  return { cloud, hub: await startOnlineHub(t, { upstreams: [cloud], ...options }) }
}

/** A hub in a process of its own, which can be killed; gone with the test. */
export async function startChildHub(t: Teardown, options: TestHubOptions): Promise<ChildHub> {
  const rootDir = rootFolder(t)
  const hub = new ChildHub(rootDir, hubFlags(rootDir, options))
  t.teardown(() => hub.crash())
  await hub.start()
  return hub
}
