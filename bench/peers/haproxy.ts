import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { freePort } from '../../test/kit/free-port.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { accepts } from './accepts.ts'
import { certificateWithKey } from './certificate-with-key.ts'
import type { Peer } from './peer.ts'
import { missingProgram, programPath } from './program.ts'

/**
 * The work that a hub does, by a proxy in C with one thread: plain HTTP in, TLS with the node's
 * certificate out, connections to the API server kept.
 */
export const haproxyHttp = haproxy('haproxy-http', 'HTTP in, TLS out, one thread', {
  plain: true,
  configuration: (port, { node }, certificate) => `  mode http
  http-reuse always
  option http-no-delay
listen api
  bind 127.0.0.1:${port}
  server api ${new URL(node.url).host} ssl crt ${certificate} ${node.ca === undefined ? 'verify none' : `verify required ca-file ${node.ca}`}
`,
})

/**
 * In TCP mode, one thread: the client's TLS passes through, so this is the least that a proxy in
 * user space can cost.
 */
export const haproxyTcp = haproxy('haproxy-tcp', 'TCP mode, one thread', {
  plain: false,
  configuration: (port, { node }) => `  mode tcp
listen api
  bind 127.0.0.1:${port}
  server api ${new URL(node.url).host}
`,
})

interface Mode {
  /** Whether its clients speak plain HTTP to it. */
  readonly plain: boolean
  /** The rest of `defaults`, and what listens. */
  readonly configuration: (port: number, upstream: Upstream, certificate: string) => string
}

function haproxy(name: 'haproxy-http' | 'haproxy-tcp', what: string, mode: Mode): Peer {
  return {
    name,
    missing: () => missingProgram('haproxy'),
    async start(upstream, workspace) {
      const command = programPath('haproxy')
      const port = await freePort()
      const file = workspace.file(`${name}.cfg`)
      const certificate = certificateWithKey(upstream.node, workspace)
      writeFileSync(file, `${settings}${mode.configuration(port, upstream, certificate)}`)
      const daemon = new Daemon(workspace, name, {
        command,
        args: ['-db', '-f', file],
        ready: () => accepts(port),
      })
      await daemon.start()
      const version = execFileSync(command, ['-v'], { encoding: 'utf8' })
      return {
        name,
        target: mode.plain
          ? { url: `http://127.0.0.1:${port}` }
          : { ...upstream.node, url: `https://127.0.0.1:${port}` },
        description: `haproxy ${/[\d.]+/.exec(version)?.[0] ?? ''}, ${what}`,
        processId: daemon.id,
      }
    },
  }
}

const settings = `global
  nbthread 1
  maxconn 5000
defaults
  timeout connect 5s
  timeout client 1h
  timeout server 1h
`
