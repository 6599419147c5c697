import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import t from 'tap'
import { startHub, stopHub } from '../../../src/node/join/hub-service.ts'

/** Runs with a systemctl that keeps what it is called with, and fails at `failing`. */
async function calledBy(
  folder: string,
  act: () => Promise<string | undefined>,
  failing = 'nothing',
): Promise<{ readonly failed: string | undefined; readonly calls: string }> {
  const calls = join(folder, 'calls')
  writeFileSync(calls, '')
  const script = `#!/bin/sh\necho "$@" >> ${calls}\n[ "$1" != ${failing} ] || { echo refused >&2; exit 1; }\n`
  writeFileSync(join(folder, 'systemctl'), script)
  chmodSync(join(folder, 'systemctl'), 0o755)
  const path = process.env['PATH']
  process.env['PATH'] = `${folder}${delimiter}${path}`
  try {
    return { failed: await act(), calls: readFileSync(calls, 'utf8') }
  } finally {
    process.env['PATH'] = path
  }
}

const all = 'nodehub.socket nodehub-ipv6.socket nodehub.service'
void t.test('starting the hub reloads systemd and restarts the current units', async (t) => {
  t.strictSame(await calledBy(t.testdir(), startHub), {
    failed: undefined,
    calls: `daemon-reload\nrestart ${all}\n`,
  })
})

void t.test('a systemctl failure is reported, and ends the command', async (t) => {
  t.strictSame(await calledBy(t.testdir(), startHub, 'daemon-reload'), {
    failed: 'refused',
    calls: 'daemon-reload\n',
  })
  t.strictSame(await calledBy(t.testdir(), stopHub, 'stop'), {
    failed: 'refused',
    calls: `stop ${all}\n`,
  })
})
