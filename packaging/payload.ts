import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { defaultRootDir } from '../src/config/root-dir.ts'
import { packagedRuntime } from '../src/node/join/runnable.ts'
import { usualPorts } from '../src/node/join/static-pod.ts'
import { systemdUnits } from '../src/node/join/systemd-units.ts'
import { configSchema, configSchemaFile } from './config-schema.ts'
import { manPage, manPageFile } from './man-page.ts'
import { architectureOf, type Architecture } from './elf.ts'

const checkout = join(import.meta.dirname, '..')

/** The folder of the hub's files, which packages own whole. */
export const programFolder = '/opt/nodehub'

/** Settings of the packaged unit; an upgrade keeps what the operator has written there. */
export const configFile = '/etc/nodehub/config.yaml'

/** Where shells look for completions; Debian's zsh in a folder of its own. */
const completionFiles = {
  bash: ['/usr/share/bash-completion/completions/nodehub'],
  zsh: ['/usr/share/zsh/site-functions/_nodehub', '/usr/share/zsh/vendor-completions/_nodehub'],
  fish: ['/usr/share/fish/vendor_completions.d/nodehub.fish'],
}

export interface PayloadSource {
  /** A checkout with `dist` built, and the packages of package-lock.json installed. */
  readonly project: string
  /** The Node to ship; packages are for its processor. */
  readonly node: string
}

/** What packages install, as files below `root`. */
export interface Payload {
  readonly root: string
  readonly version: string
  readonly architecture: Architecture
  /** The files outside of `programFolder`, by their paths on the node. */
  readonly files: readonly string[]
  readonly bytes: number
}

/** Puts what packages install into the empty folder `root`. Fetches nothing. */
export function stagePayload(root: string, { project, node }: PayloadSource): Payload {
  const architecture = architectureOf(node)
  const program = join(root, programFolder)
  execFileSync(process.execPath, [join(project, 'bin', 'assemble.js'), project, program], {
    stdio: 'inherit',
  })
  const files = new Map<string, { readonly content: string | Buffer; readonly mode: number }>()
  const own = (name: string): Buffer => readFileSync(join(import.meta.dirname, name))
  files.set('/usr/bin/nodehub', { content: own('nodehub.sh'), mode: 0o755 })
  const plugin = '#!/bin/sh\nexec /usr/bin/nodehub kubectl "$@"\n'
  files.set('/usr/bin/kubectl-nodehub', { content: plugin, mode: 0o755 })
  files.set(configFile, { content: own('config.yaml'), mode: 0o600 })
  for (const [name, content] of Object.entries(packagedUnits()))
    files.set(`/usr/lib/systemd/system/${name}`, { content, mode: 0o644 })
  files.set('/usr/share/doc/nodehub/copyright', {
    content: `${copyright}${readFileSync(join(project, 'LICENSE'), 'utf8')}`,
    mode: 0o644,
  })
  for (const [shell, paths] of Object.entries(completionFiles)) {
    const main = join(program, 'dist', 'src', 'main.js')
    const content = execFileSync(process.execPath, [main, 'completion', shell])
    for (const path of paths) files.set(path, { content, mode: 0o644 })
  }
  files.set(manPageFile, { content: manPage, mode: 0o644 })
  write(join(root, configSchemaFile), JSON.stringify(configSchema(), undefined, 2), 0o644)
  const pages = ['CHANGELOG.md', 'docs/**/*.*']
  for (const page of globSync(pages, { cwd: checkout }))
    write(join(program, page), readFileSync(join(checkout, page)), 0o644)
  for (const [path, { content, mode }] of files) write(join(root, path), content, mode)
  mkdirSync(dirname(join(root, packagedRuntime)), { recursive: true })
  copyFileSync(node, join(root, packagedRuntime))
  onlyRootWrites(root)
  chmodSync(join(root, packagedRuntime), 0o755)
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    version: string
  }
  return { root, version, architecture, files: [...files.keys()], bytes: sizeOf(root) }
}

/** One service with its sockets, as `nodehub join` writes them, but for its settings in a file. */
const packagedUnits = (): Readonly<Record<string, string>> =>
  systemdUnits({
    args: ['start', `--config=${configFile}`],
    rootDir: defaultRootDir,
    ports: usualPorts,
    nodeName: undefined,
    runtime: packagedRuntime,
  })

const copyright = `nodehub is licensed under the Apache License, version 2.0, below. The licenses of the packages that it
needs are beside each of them in ${programFolder}/node_modules; ${programFolder}/sbom.cdx.json lists them. Node is
under the MIT license (https://github.com/nodejs/node/blob/main/LICENSE).

`

function write(path: string, content: string | Buffer, mode: number): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  chmodSync(path, mode)
}

/** Whatever umask and modes the checkout has: files that others may write are not run as root. */
function onlyRootWrites(root: string): void {
  chmodSync(root, 0o755)
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const { mode } = statSync(path)
    if (entry.isDirectory()) chmodSync(path, 0o755)
    else if (entry.isFile()) chmodSync(path, mode & 0o100 ? 0o755 : mode & 0o077 ? 0o644 : 0o600)
  }
}

function sizeOf(root: string): number {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

/** Copies a payload, for a package whose tool works in a folder of its own. */
export const copyPayload = ({ root }: Payload, to: string): void =>
  cpSync(root, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
