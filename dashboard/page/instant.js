// The instant that somebody looks at, with the pointer or the arrow keys: all charts mark
// it, and each gate tells its figures.

const listeners = [];

export const instant = {
  at: null, // milliseconds since 1970; null: nobody looks at one
  set(at) {
    this.at = at;
    for (const f of listeners) f();
  },
  listen(f) {
    listeners.push(f);
  },
};
