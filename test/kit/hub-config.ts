import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig, type HubConfig, type LogLevel } from '../../src/config/config.ts'
import { processSources } from '../../src/config/process.ts'
import { CloudServer, nodeName } from './cloud.ts'

export interface TestHubOptions {
  /** The API servers, most wanted first; none where they are told otherwise. */
  readonly upstreams: readonly (CloudServer | { readonly url: string })[]
  /** Flags as for `nodehub start`. */
  readonly flags?: readonly string[]
  /** Instead of what the flags make of it. */
  readonly config?: Partial<HubConfig>
  /** Absent: lines of every level. */
  readonly logLevel?: LogLevel
  /** Whether it makes its own certificates, as every hub does where no test starts it. */
  readonly ownCertificates?: true
}

/**
 * Probes follow each other closely, and one is enough for a verdict, so that no test waits for one.
 */
const quickHeartbeat = { intervalMs: 120, timeoutMs: 2_000, failedRetry: 1, healthyThreshold: 1 }

/**
 * A node's hub, which keeps its state in `rootDir` and takes every caller on loopback without
 * credentials for the node.
 */
export const hubFlags = (
  rootDir: string,
  { upstreams, flags = [] }: TestHubOptions,
): readonly string[] => [
  ...(upstreams.length > 0 ? [`--server-addr=${upstreams.map(({ url }) => url).join(',')}`] : []),
  ...credentialFlags(rootDir, upstreams),
  // A file may name the node: flags would win over it.
  ...(flags.some((flag) => flag.startsWith('--config=')) ? [] : [`--node-name=${nodeName}`]),
  `--root-dir=${join(rootDir, 'state')}`,
  '--anonymous-loopback=node',
  // The interface would be one for all hubs of this machine.
  '--enable-dummy-if=false',
  ...flags,
]

/** What the flags make, on free ports. */
export function testConfig(flags: readonly string[], changes: Partial<HubConfig> = {}): HubConfig {
  const result = readConfig({
    ...processSources(flags),
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
  })
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  const { proxy, ops } = result.config
  return {
    ...result.config,
    proxy: { ...proxy, port: 0, securePort: 0 },
    ops: { ...ops, port: 0 },
    heartbeat: quickHeartbeat,
    shutdownGracePeriodMs: 100,
    // What API servers are asked is what the test's clients ask, unless it says otherwise.
    boot: { refreshMs: 0, condition: false },
    configMap: flags.some((flag) => flag.startsWith('--hub-config-map'))
      ? result.config.configMap
      : undefined,
    // The test and its API servers are in the same process, and no hub would shed requests for what
    // these hold.
    memoryLimitBytes: result.config.memoryLimitBytes ?? 8 * 2 ** 30,
    ...changes,
  }
}

/** The node's certificate at the first API server that takes one, and whom it trusts. */
function credentialFlags(
  rootDir: string,
  upstreams: TestHubOptions['upstreams'],
): readonly string[] {
  const secure = upstreams.find(
    (upstream): upstream is CloudServer =>
      upstream instanceof CloudServer && upstream.sandbox.caCertificate !== undefined,
  )
  if (!secure) return []
  const { certificate, key } = secure.node
  const write = (name: string, text: string): string => {
    const path = join(rootDir, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  return [
    `--upstream-ca=${write('ca.crt', secure.sandbox.caCertificate ?? '')}`,
    `--upstream-client-cert=${write('node.crt', certificate)}`,
    `--upstream-client-key=${write('node.key', key)}`,
  ]
}
