import t from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { defaultRootDir, rootDirAhead } from '../../src/config/root-dir.ts'

type Environment = Record<string, string>

/** As `readConfig` finds it, with a configuration file that names `/from/file`. */
function rootDirRead(argv: readonly string[], env: Environment): string {
  const result = readConfig({
    argv: ['--server-addr=https://a:6443', ...argv],
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous', ...env },
    readFile: () => 'root-dir: /from/file',
    hostname: 'edge-1',
  })
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  return result.config.rootDir
}

void t.test('rootDirAhead() gives the root directory of the configuration', async (t) => {
  const cases: readonly (readonly [readonly string[], Environment])[] = [
    [[], {}],
    [['--root-dir=/flag'], {}],
    [['--root-dir', '/flag', '--node-name=a'], {}],
    [['--root_dir=/first', '--root-dir=/last'], {}],
    [['--root-dir=/flag'], { NODEHUB_ROOT_DIR: '/environment' }],
    [[], { NODEHUB_ROOT_DIR: '/environment' }],
    [[], { NODEHUB_ROOT_DIR: '' }],
    [['--config=/file.yaml', '--root-dir=/flag'], {}],
    [['--config=/file.yaml'], { NODEHUB_ROOT_DIR: '/environment' }],
  ]
  for (const [argv, env] of cases)
    t.equal(rootDirAhead(argv, env), rootDirRead(argv, env), JSON.stringify([argv, env]))
  t.equal(rootDirAhead([], {}), defaultRootDir)
})

void t.test('a root directory that only a file may name is not known ahead', async (t) => {
  t.equal(rootDirRead(['--config=/file.yaml'], {}), '/from/file')
  t.equal(rootDirAhead(['--config=/file.yaml'], {}), undefined)
  t.equal(rootDirAhead([], { NODEHUB_CONFIG: '/file.yaml' }), undefined)
})
