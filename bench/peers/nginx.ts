import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { freePort } from '../../test/kit/free-port.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { accepts } from './accepts.ts'
import type { Peer } from './peer.ts'
import { missingProgram, programPath } from './program.ts'

/** One worker: plain HTTP in, TLS with the node's certificate out, kept connections, unbuffered. */
export const nginx: Peer = {
  name: 'nginx',
  missing: () => missingProgram('nginx'),
  async start(upstream, workspace) {
    const command = programPath('nginx')
    const port = await freePort()
    const folder = workspace.file('nginx')
    mkdirSync(folder)
    const file = workspace.file('nginx', 'nginx.conf')
    writeFileSync(file, configuration(port, folder, upstream))
    const daemon = new Daemon(workspace, 'nginx', {
      command,
      args: ['-p', folder, '-e', 'stderr', '-c', file],
      ready: () => accepts(port),
    })
    await daemon.start()
    const version = spawnSync(command, ['-v'], { encoding: 'utf8' }).stderr
    return {
      name: 'nginx',
      target: { url: `http://127.0.0.1:${port}` },
      description: `nginx ${/[\d.]+/.exec(version)?.[0] ?? ''}, HTTP in, TLS out, one worker`,
      processId: daemon.id,
    }
  },
}

const configuration = (port: number, folder: string, { node }: Upstream): string => `daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr warn;
events {
  worker_connections 5000;
}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000;
  upstream api {
    server ${new URL(node.url).host};
    keepalive 64;
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass https://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1;
      proxy_ssl_certificate ${node.certificate};
      proxy_ssl_certificate_key ${node.key};
      ${node.ca === undefined ? '' : `proxy_ssl_trusted_certificate ${node.ca};\n      proxy_ssl_verify on;\n      proxy_ssl_name localhost;`}
      proxy_buffering off;
      proxy_buffer_size 64k;
      proxy_buffers 8 64k;
      proxy_read_timeout 1h;
    }
  }
}
`
