import { globSync, readFileSync } from 'node:fs'

/** What a reader types, and where it stands. */
export interface DocumentedLine {
  readonly page: string
  /** A line, with those that continue it; of a block that is a script, the whole block. */
  readonly line: string
}

/** By its first word a code block is one of commands; others show files and what is printed. */
const programs =
  /^(?:nodehub|kubectl|kubeadm|helm|systemctl|systemd-creds|journalctl|crictl|ctr|buildah|curl|tail|cut|chmod|date|df|dmesg|smartctl|apt|dnf|tar|npm|prometheus|ssh|scp|ss|iptables|rm|mv|echo|kill|export|alias|for|[A-Z_]+=\S+)\b/

const isScript = (block: string): boolean => /^(?:for .*; do|\w+\(\) \{)$/m.test(block)

const linesIn = (page: string): DocumentedLine[] =>
  [...readFileSync(page, 'utf8').matchAll(/^( *)```(.*)\n([\s\S]*?)^\1```$/gm)].flatMap(
    ([, indent = '', language, indented = '']) => {
      if (language !== '') return []
      const text = indented.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      if (!programs.test(text)) return []
      const block = text.replaceAll(/\\\n\s*/g, '').trimEnd()
      const lines = isScript(block) ? [block] : block.split('\n').filter(Boolean)
      return lines.map((line) => ({ page, line: line.replace(/ +# .*$/, '') }))
    },
  )

/** Commands in the text of runbooks, whose sections are too short for code blocks. */
const runbooks = /^docs\/alerts\.md$/

const linesInText = (page: string): DocumentedLine[] =>
  runbooks.test(page)
    ? readFileSync(page, 'utf8')
        .split('\n\n')
        .flatMap((paragraph) => [...(paragraph.split(/\bDo:\s/)[1] ?? '').matchAll(/`([^`]+)`/g)])
        .map(([, words = '']) => ({ page, line: words.replaceAll(/\s+/g, ' ') }))
        .filter(({ line }) => programs.test(line))
    : []

/** Every command that a page for readers shows in a code block, or in the text of a runbook. */
export const documentedLines = (): DocumentedLine[] =>
  globSync(['*.md', 'docs/**/*.md'], { exclude: ['CHANGELOG.md'] })
    .toSorted()
    .flatMap((page) => [...linesIn(page), ...linesInText(page)])

/** Commands of the hub that the text of a page or a message names, whole or in part. */
export const namedCommands = (): DocumentedLine[] => [
  ...namedIn(
    globSync(['*.md', 'docs/**/*.md'], { exclude: ['CHANGELOG.md'] }),
    /`(nodehub [a-z][^`:]*)`/g,
  ),
  ...namedIn(
    globSync('src/**/*.{ts,js,html}'),
    /(?<!kubectl )(nodehub (?:inspect [a-z-]+|[a-z-]+(?= --))(?: --[a-z-]+)*)/g,
  ),
]

const namedIn = (pages: readonly string[], command: RegExp): DocumentedLine[] =>
  pages.toSorted().flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(command)].map(([, words = '']) => ({
      page,
      line: words.replaceAll(/\s+/g, ' '),
    })),
  )

/** The commands of the hub among these, without what a shell does with their output. */
export const documentedCommands = (): string[] =>
  documentedLines()
    .filter(({ line }) => line.startsWith('nodehub ') && !line.includes('\n'))
    .map(({ line }) => line.replace(/\s*[|>].*/, ''))
