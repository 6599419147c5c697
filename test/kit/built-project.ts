import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { plainNode } from './cluster/plain-node.ts'

const exec = promisify(execFile)

const project = join(import.meta.dirname, '..', '..')

/**
 * Makes `folder` a checkout as far as the image and packages are made of it, with a build of its
 * own: the project's may be another's. Resolves to the folder.
 */
export async function buildProject(folder: string): Promise<string> {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const compiler = join(project, 'node_modules', 'typescript', 'bin', 'tsc')
  const config = join(project, 'tsconfig.build.json')
  // What is emitted is the same without a check of the types, which takes half of the time.
  await exec(...plainNode(compiler, '-p', config, '--noCheck', '--outDir', join(folder, 'dist')))
  await exec(...plainNode(join(project, 'bin', 'bundle.js'), join(folder, 'dist')))
  for (const file of [
    'Dockerfile',
    '.dockerignore',
    'LICENSE',
    'package.json',
    'package-lock.json',
    'bin/assemble.js',
    'bin/nodehub.js',
    'bin/sbom.js',
  ])
    copyFileSync(join(project, file), join(folder, file))
  for (const path of productionPackages())
    cpSync(join(project, path), join(folder, path), { recursive: true })
  return folder
}

function productionPackages(): string[] {
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>
  }
  return Object.entries(packages)
    .filter(
      ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional,
    )
    .map(([path]) => path)
}

/**
 * Puts programs, this process's own Node by default, with the libraries that the loader says they
 * need where these are looked for. Resolves to the folder.
 */
export async function makeRootfs(
  rootfs: string,
  ldd: string,
  programs: Readonly<Record<string, string>> = { '/usr/local/bin/node': process.execPath },
): Promise<string> {
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(rootfs, to)), { recursive: true })
    copyFileSync(realpathSync(from), join(rootfs, to))
  }
  for (const [to, from] of Object.entries(programs)) {
    const { stdout } = await exec(ldd, [from])
    for (const library of stdout.match(/\/\S+(?= \(0x)/g) ?? []) put(library, library)
    put(from, to)
  }
  mkdirSync(join(rootfs, 'tmp'), { mode: 0o777, recursive: true })
  return rootfs
}
