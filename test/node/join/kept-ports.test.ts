import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import t from 'tap'
import { arePortsKept, keepPorts } from '../../../src/node/join/kept-ports.ts'
import { runLine } from '../../../src/node/join/kubelet-service.ts'
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { usualPorts } from '../../../src/node/join/static-pod.ts'
import { rootFolder } from '../../kit/root-folder.ts'

void t.test('sysctl -p loads the file at once', async (t) => {
  const folder = rootFolder(t)
  const called = join(folder, 'called')
  const sysctl = join(folder, 'sysctl')
  const path = process.env['PATH']
  t.teardown(() => (process.env['PATH'] = path))
  process.env['PATH'] = `${folder}${delimiter}${path}`
  writeFileSync(sysctl, `#!/bin/sh\necho "$@" > ${called}\n`)
  chmodSync(sysctl, 0o755)
  t.equal(await runLine(keepPorts), undefined)
  t.equal(readFileSync(called, 'utf8'), '-p /etc/sysctl.d/90-nodehub.conf\n')
  writeFileSync(sysctl, '#!/bin/sh\necho Invalid argument >&2\nexit 255\n')
  t.equal(await runLine(keepPorts), 'Invalid argument')
})

void t.test('ports below ip_unprivileged_port_start are kept', (t) => {
  const setTo = (start: number): NodeFiles =>
    new NodeFiles(
      t.testdir({ proc: { sys: { net: { ipv4: { ip_unprivileged_port_start: `${start}\n` } } } } }),
    )
  t.ok(arePortsKept(setTo(10_269), usualPorts, false))
  t.notOk(arePortsKept(setTo(10_268), usualPorts, false), 'the highest is not')
  t.notOk(arePortsKept(setTo(10_269), usualPorts, true), 'of an image nothing is known')
  const low = { proxy: 961, secure: 968, ops: 967 }
  t.ok(arePortsKept(setTo(1_024), low, false))
  t.notOk(arePortsKept(setTo(0), low, false))
  t.ok(arePortsKept(setTo(0), low, true))
  t.end()
})
