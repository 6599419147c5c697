import { readFileSync } from 'node:fs'
import type { RowResult } from '../measure/row.ts'
import type { PeerName } from '../peers/peer.ts'

/** One run: where, of what, and what came out. */
export interface Results {
  /** In UTC, to the minute. */
  readonly date: string
  /** Of the checkout; with `+` where files differ from it. */
  readonly commit: string
  readonly machine: string
  readonly upstream: string
  /** How many cores other programs took before the run began, and after it was over. */
  readonly otherWork: readonly number[]
  readonly runs: number
  readonly seconds: number
  readonly minutes: number
  readonly peers: readonly { readonly name: PeerName; readonly description: string }[]
  /** Peers and rows that were left out, and why. */
  readonly missing: readonly { readonly name: string; readonly why: string }[]
  readonly rows: readonly RowResult[]
}

/** What the page says of a run besides its results. */
export interface PageNotes {
  /** Repeats the run. */
  readonly command: string
  /** What moved since another run. */
  readonly moved: readonly string[]
}

/** Throws where the file is not what a run of the benchmark wrote. */
export function readResults(file: string): Results {
  const results = JSON.parse(readFileSync(file, 'utf8')) as Partial<Results>
  if (!Array.isArray(results.rows) || typeof results.machine !== 'string')
    throw new Error(`${file}: not the results.json of a run`)
  return results as Results
}
