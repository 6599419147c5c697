import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { installedEnvironment } from '../../bench/peers/hub.ts'
import { systemdUnits } from '../../src/node/join/systemd-units.ts'
import { usualPorts } from '../../src/node/join/static-pod.ts'

const dockerfile = readFileSync(join(import.meta.dirname, '../../Dockerfile'), 'utf8')
const { 'nodehub.service': unit } = systemdUnits({
  args: ['start'],
  rootDir: '/var/lib/nodehub',
  ports: usualPorts,
  nodeName: 'edge-1',
  runtime: '/usr/bin/node',
})

/** What malloc reads, of lines that set an environment. */
const ofMalloc = (text: string, line: RegExp): readonly string[] =>
  [...text.matchAll(line)]
    .flatMap(([, set = '']) => set.split(' '))
    .filter((each) => each.startsWith('MALLOC_'))
    .toSorted()

void t.test('the bench gives malloc the settings of the image and of the unit', async (t) => {
  const measured = Object.entries(installedEnvironment).map((each) => each.join('='))
  t.strictSame(ofMalloc(dockerfile, /^ENV (.*)$/gm), measured.toSorted())
  t.strictSame(ofMalloc(unit, /^Environment=(.*)$/gm), measured.toSorted())
})
