// What the page knows: the newest reading, and the history that it has been sent.

const SAMPLES_MAX = 3600;
const LOG_MAX = 1000;

export class Model {
  constructor() {
    this.about = null;
    this.problem = null;
    this.group = null; // the newest message
    this.receivedAt = 0; // by the page's own clock, in seconds
    this.spans = new Map(); // partition id -> [{at, owner, expired}], each until the next
    this.colours = new Map(); // owner id -> number
    this.samples = [];
    this.log = [];
    this.stuck = new Map(); // partition id -> finding
  }

  // The present time by the store's clock.
  now() {
    return this.group ? this.group.at + (performance.now() / 1000 - this.receivedAt) : 0;
  }

  // How much older ages are than when they were sent.
  drift() {
    return this.group ? Math.max(0, performance.now() / 1000 - this.receivedAt) : 0;
  }

  receive(message) {
    this.problem = message.problem;
    const group = message.group;
    if (!group) return { entries: [], isWhole: false };
    this.group = group;
    this.receivedAt = performance.now() / 1000;
    for (const [owner, number] of group.owners) this.colours.set(owner, number);
    if (group.is_whole) {
      this.spans.clear();
      this.samples = [];
      this.log = [];
      this.addMoves(group.base);
    }
    this.addMoves(group.moves);
    this.forget(group.begin);
    this.samples.push(...group.samples);
    // Of readings in quick succession the store keeps the newest, and so does the page.
    this.samples = this.samples
      .filter((each, i, all) => i === all.length - 1 || all[i + 1][0] - each[0] >= 0.3)
      .slice(-SAMPLES_MAX);
    this.log = [...this.log, ...group.log].slice(-LOG_MAX);
    this.stuck = new Map();
    for (const finding of group.findings) {
      if (!finding.is_stuck) continue;
      for (const number of finding.partitions) {
        const id = group.partitions.id[number];
        if (!this.stuck.has(id)) this.stuck.set(id, finding);
      }
    }
    return { entries: group.log, isWhole: group.is_whole };
  }

  addMoves(moves) {
    const { id } = this.group.partitions;
    for (let i = 0; i < moves.length; i += 4) {
      const partition = id[moves[i + 1]];
      const owner = moves[i + 2] < 0 ? null : this.group.owners[moves[i + 2]][0];
      const spans = this.spans.get(partition) ?? [];
      spans.push({ at: moves[i], owner, expired: moves[i + 3] === 1 });
      this.spans.set(partition, spans);
    }
  }

  forget(begin) {
    for (const spans of this.spans.values()) {
      while (spans.length > 1 && spans[1].at <= begin) spans.shift();
      if (spans.length && spans[0].at < begin) spans[0].at = begin;
    }
  }

  // The members, and former owners that the history still shows.
  shownMembers() {
    const { members } = this.group;
    const known = new Set(members.map((member) => member.id));
    const former = new Set();
    for (const spans of this.spans.values()) {
      for (const { owner } of spans) if (owner !== null && !known.has(owner)) former.add(owner);
    }
    return [...members, ...[...former].sort().map((id) => ({ id, state: "gone" }))];
  }

  // The holder of a partition at a time; null before the history begins.
  holder(partition, at) {
    const spans = this.spans.get(partition) ?? [];
    let low = 0;
    let high = spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[middle].at <= at) low = middle + 1;
      else high = middle;
    }
    return low ? spans[low - 1] : null;
  }

  isGap(at) {
    return this.group.gaps.some(([begin, end]) => begin < at && at < end);
  }
}
