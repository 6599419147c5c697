import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const fixtures = join(import.meta.dirname, '..', 'fixtures')
const findings = join(import.meta.dirname, 'corpus')

/** An input that once was answered wrongly, by its file. */
export const finding = (name: string): Buffer => readFileSync(join(findings, name))

/**
 * Answers of a kube-apiserver whose names match, with what was found by earlier runs under the same
 * beginning.
 */
export function corpus(pattern: RegExp): readonly Buffer[] {
  const files = [fixtures, findings].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => pattern.test(name))
      .sort()
      .map((name) => readFileSync(join(folder, name))),
  )
  return files.filter(({ length }) => length > 0 && length < 200_000)
}
