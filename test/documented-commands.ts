import { globSync, readFileSync } from 'node:fs'

/**
 * Commands of the hub in the code blocks of a document, one a line, without what a shell does with
 * their output.
 */
const commandsIn = (document: string): string[] =>
  [...readFileSync(document, 'utf8').matchAll(/^```\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    block
      .replaceAll(/\\\n\s*/g, '')
      .split('\n')
      .filter((line) => line.startsWith('nodehub '))
      .map((line) => line.replace(/\s*[|>].*/, '')),
  )

/** The commands of the hub that any document shows. */
export const documentedCommands = (): string[] =>
  globSync(['*.md', 'docs/**/*.md']).flatMap(commandsIn)
