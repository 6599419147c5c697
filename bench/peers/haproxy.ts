import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { findBinaries } from '../../test/kit/cluster/binaries.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { accepts } from './accepts.ts'
import type { Peer } from './peer.ts'

/**
 * In TCP mode, one thread: the client's TLS passes through, so this is the least that a proxy in
 * user space can cost.
 */
export const haproxy: Peer = {
  name: 'haproxy',
  missing() {
    const found = findBinaries(['haproxy'])
    return 'missing' in found ? found.missing : undefined
  },
  async start({ node }, workspace) {
    const found = findBinaries(['haproxy'])
    if ('missing' in found) throw new Error(found.missing)
    const command = found.paths.haproxy
    const port = await freePort()
    const file = workspace.file('haproxy.cfg')
    writeFileSync(file, configuration(port, new URL(node.url).host))
    const daemon = new Daemon(workspace, 'haproxy', {
      command,
      args: ['-db', '-f', file],
      ready: () => accepts(port),
    })
    await daemon.start()
    const version = execFileSync(command, ['-v'], { encoding: 'utf8' })
    return {
      name: 'haproxy',
      target: { ...node, url: `https://127.0.0.1:${port}` },
      description: `${/[\d.]+/.exec(version)?.[0] ?? ''} in TCP mode, one thread`,
      processId: daemon.id,
    }
  },
}

const configuration = (port: number, server: string): string => `global
  nbthread 1
  maxconn 2000
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen api
  bind 127.0.0.1:${port}
  server api ${server}
`
