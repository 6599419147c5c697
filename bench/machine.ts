import { cpus, release, totalmem } from 'node:os'

/** The machine that figures were taken on, in a line. */
export const machine = (): string =>
  [
    `${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`,
    `${Math.round(totalmem() / 2 ** 30)} GB`,
    `${process.platform} ${release()}`,
    `Node ${process.versions.node}`,
  ].join(', ')
