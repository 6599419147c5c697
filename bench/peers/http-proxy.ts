import { readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import httpProxy from 'http-proxy'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { accepts } from './accepts.ts'
import type { Peer } from './peer.ts'

/** The simplest proxy: the http-proxy package with kept-alive connections. */
export const httpProxyPeer: Peer = {
  name: 'http-proxy',
  missing: () => undefined,
  async start({ node }, workspace) {
    const port = await freePort()
    const file = workspace.file('http-proxy.json')
    writeFileSync(file, JSON.stringify({ ...node, port } satisfies Settings))
    const daemon = new Daemon(workspace, 'http-proxy', {
      command: process.execPath,
      args: ['--disable-warning=DEP0060', import.meta.filename, file],
      ready: () => accepts(port),
    })
    await daemon.start()
    return {
      name: 'http-proxy',
      target: { url: `http://127.0.0.1:${port}` },
      description: `http-proxy on Node ${process.versions.node}`,
      processId: daemon.id,
    }
  },
}

interface Settings {
  readonly url: string
  readonly ca?: string
  readonly certificate: string
  readonly key: string
  readonly port: number
}

if (import.meta.main) {
  const settings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Settings
  const agent = new Agent({
    keepAlive: true,
    ...(settings.ca !== undefined && { ca: readFileSync(settings.ca) }),
    cert: readFileSync(settings.certificate),
    key: readFileSync(settings.key),
  })
  const proxy = httpProxy.createProxyServer({ target: settings.url, agent, changeOrigin: true })
  // The client's connection is cut; the load counts that.
  proxy.on('error', (_error, _request, response) => void response.destroy())
  proxy.listen(settings.port, '127.0.0.1')
}
