// What doesn't stand out from its ground, by WCAG's ratio: texts below 4.5 to 1, marks below 3 to 1.
({
  channel: (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4),
  numbers: (colour) => colour.match(/[\d.]+/g).map(Number),

  luminance(colour) {
    const [red, green, blue] = this.numbers(colour).map((value) => this.channel(value / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  },

  ratio(one, other) {
    const [low, high] = [this.luminance(one), this.luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  },

  ground(element) {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (this.numbers(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  },

  paleTexts() {
    const written = (element) =>
      [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    return [...document.body.querySelectorAll("*:not(script, .turn-number)")]
      .filter((element) => element.checkVisibility() && written(element))
      .map((element) => {
        const style = getComputedStyle(element);
        return [
          element.textContent,
          this.ratio(element instanceof SVGElement ? style.fill : style.color, this.ground(element)),
        ];
      })
      .filter(([, ratio]) => !(ratio >= 4.5));
  },

  paleMarks(names) {
    const probe = document.body.appendChild(document.createElement("span"));
    const colour = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    return names.filter((name) => !(this.ratio(colour(name), colour("--surface")) >= 3));
  },
});
