import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { builtHub } from './peers/hub.ts'

/** This one. */
export const checkout = join(import.meta.dirname, '..')

/**
 * Builds `dist/` of a checkout if it is missing or older than its sources, and returns its entry.
 * Throws if the build fails.
 */
export function ensureBuilt(root = checkout): string {
  const built = builtHub(root)
  const sources = ['src', 'filters', 'bin', 'tsconfig.build.json', 'tsconfig.json', 'package.json']
  const newest = Math.max(...sources.map((name) => newestIn(join(root, name))))
  if (existsSync(built) && statSync(built).mtimeMs >= newest) return built
  const { status, stdout } = spawnSync('npm', ['run', '--silent', 'build'], {
    cwd: root,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`npm run build failed:\n${stdout.slice(0, 4000)}`)
  return built
}

/**
 * When a file, or the newest file in a folder, was last written, in milliseconds since the epoch.
 */
function newestIn(path: string): number {
  if (!statSync(path).isDirectory()) return statSync(path).mtimeMs
  return Math.max(
    0,
    ...readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs),
  )
}
