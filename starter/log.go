package starter

import "log/slog"

// logger writes what parts that run in the background have to say to standard error: warnings, with --verbose also what
// they do, with --quiet errors alone.
func (a *App) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case a.Verbose:
		level = slog.LevelInfo
	case a.Quiet:
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// aside is the logger of parts whose errors the command shows itself: it writes with --verbose alone.
func (a *App) aside() *slog.Logger {
	if a.Verbose {
		return a.logger()
	}
	return slog.New(slog.DiscardHandler)
}
