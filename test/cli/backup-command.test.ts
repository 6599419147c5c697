import t from 'tap'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { backup } from '../../src/cli/backup-command.ts'
import { restoreCommand } from '../../src/cli/restore-command.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { makeState, stateIn } from '../node/backup/state.ts'

function terminal() {
  const said = { out: '', err: '' }
  const out = (text: string): void => void (said.out += text)
  const err = (text: string): void => void (said.err += text)
  return { said, out, err }
}

void t.test('backup and restore name the node and its files', async (t) => {
  const folder = rootFolder(t)
  const source = makeState(join(folder, 'state'), 'old')
  const file = join(folder, 'edge-7.tar')
  const written = terminal()
  const flags = ['--node-name=edge-7', `--root-dir=${source}`]
  t.equal(await backup.run([file, ...flags], written), 0)
  t.match(written.said, {
    out: /^wrote .*: 6 files of edge-7 with the store, \d+ bytes\n$/,
    err: '',
  })
  const target = join(folder, 'other')
  const restored = terminal()
  t.equal(
    await restoreCommand.run([file, '--node-name=edge-7', `--root-dir=${target}`], restored),
    0,
  )
  t.match(restored.said.out, /^restored the state of edge-7 as of 20\S+Z, written by nodehub/)
  t.equal(stateIn(target)['store'], 'old')
  const again = terminal()
  t.equal(await restoreCommand.run([file, ...flags], again), 1)
  t.match(again.said, { out: '', err: /was not restored: a hub has state in .*--replace/ })
})

void t.test('a backup without state is refused, with no file', async (t) => {
  const folder = rootFolder(t)
  const file = join(folder, 'none.tar')
  const { said, ...to } = terminal()
  t.equal(await backup.run([file, `--root-dir=${join(folder, 'none')}`], to), 1)
  t.match(said.err, /none.tar was not written: .*none holds no state of a hub\n$/)
  t.notOk(existsSync(file))
  t.equal(await backup.run([], to), 2)
  t.match(said.err, 'FILE is missing')
})
